"""The Java process of the filter: its class archive, its collector, its end when it hangs, its log on a terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from fraud_filter.java import class_archive
from lab.harness.supplies import ensure_class_archive


def test_a_session_takes_the_class_archive_which_is_made_once(spark: Any, java_home: Path) -> None:
    """The kernel tells what it maps into its memory."""
    archive = class_archive.find()
    if archive is None:
        pytest.skip(f"the Java in {java_home} writes no archive")
    java = psutil.Process(spark.sparkContext._gateway.proc.pid)
    assert str(archive) in {region.path for region in java.memory_maps()}
    said: list[str] = []
    ensure_class_archive(java_home, said.append)
    assert said == []


#: In a program of its own: what the end makes PySpark forget, other tests still use.
_HANGS_AT_ITS_STOP = """
import time
from fraud_filter.spark import session
from fraud_filter.config import load
from fraud_filter.supervisor.java import Java

java = Java(session.launch(load({"spark_master": "local[1]"})))
with java.killed_after(0.5, dump=True):
    while java.returncode is None:
        time.sleep(0.05)
print("ended", java.overdue, java.returncode)
java.end(None, 1)
"""


def test_a_java_that_hangs_at_a_stop_leaves_its_threads_in_the_log(java_home: Path) -> None:  # noqa: ARG001 - it is there
    ran = subprocess.run(
        [sys.executable, "-c", _HANGS_AT_ITS_STOP], capture_output=True, text=True, timeout=240, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "Full thread dump" in ran.stdout
    assert "ended True -9" in ran.stdout


#: In a program of its own: one Java a program.
_TELLS_ITS_OPTIONS = """
import sys
from fraud_filter.spark import session
from fraud_filter.config import load

gateway = session.launch(load({"spark_master": "local[1]", "spark_conf": sys.argv[1]}))
management = gateway.jvm.java.lang.management.ManagementFactory
collectors = sorted(bean.getName() for bean in management.getGarbageCollectorMXBeans())
machine = gateway.jvm.java.lang.Class.forName("com.sun.management.HotSpotDiagnosticMXBean")
diagnostic = management.getPlatformMXBean(machine)
print(*collectors, diagnostic.getVMOption("Tier3BackEdgeThreshold").getValue(), sep=",")
gateway.shutdown()
gateway.proc.stdin.close()
"""


@pytest.mark.parametrize(
    ("conf", "options"),
    [
        ({}, "Copy,MarkSweepCompact,1000"),
        ({"spark.driver.defaultJavaOptions": "-XX:+UseParallelGC"}, "PS MarkSweep,PS Scavenge,60000"),
        ({"spark.driver.extraJavaOptions": "-XX:+UseParallelGC"}, "PS MarkSweep,PS Scavenge,1000"),
        ({"spark.driver.extraJavaOptions": "-XX:Tier3BackEdgeThreshold=5"}, "Copy,MarkSweepCompact,5"),
    ],
)
def test_collector_and_compiler_are_set_for_latency_or_by_the_user(
    java_home: Path,  # noqa: ARG001 - it is there
    conf: dict[str, str],
    options: str,
) -> None:
    argv = [sys.executable, "-c", _TELLS_ITS_OPTIONS, json.dumps(conf)]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False)
    assert ran.stdout.splitlines()[-1:] == [options], ran.stderr


#: What `ps` shows of all processes, while Spark has the secret.
_HAS_OPTIONS = """
import sys
from contextlib import suppress
from pathlib import Path
from fraud_filter.spark import session
from fraud_filter.config import load

settings = load({"spark_master": "local[1]", "spark_conf": sys.stdin.read()})
gateway = session.launch(settings)
spark = session.connect(gateway, settings)
seen = b""
for path in Path("/proc").glob("[0-9]*/cmdline"):
    with suppress(OSError):  # of one that has just ended
        seen += path.read_bytes()
print(spark.conf.get("spark.x.password"), b"hunt" b"er2" in seen, b"visi" b"ble" in seen)
print(spark._jsc.hadoopConfiguration().get("fs.x.secret.key"), spark.sparkContext.getConf().get("spark.app.name"))
spark.stop()
gateway.shutdown()
gateway.proc.stdin.close()
"""


def test_secrets_of_spark_are_on_no_command_line(java_home: Path) -> None:  # noqa: ARG001 - it is there
    conf = {"spark.x.password": "hunter2", "spark.hadoop.fs.x.secret.key": "hunter2", "spark.x.plain": "visible"}
    ran = subprocess.run(
        [sys.executable, "-c", _HAS_OPTIONS], input=json.dumps(conf), capture_output=True, text=True, check=False
    )
    assert ran.stdout.splitlines()[-2:] == ["hunter2 False True", "hunter2 fraud-filter"], ran.stderr


# -- what records hold never acts on a terminal: Spark's own log, fed with escapes


#: Sets a terminal's title, clears it (ESC, and C1's own letter for it), turns the writing, forges a line.
HOSTILE = "p\x1b]0;owned\x07\x9b2J\u202egnp\u2066\nnothing lost"
ACTING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
_LOGS = """
import sys
from pathlib import Path
from fraud_filter.config import load
from fraud_filter.spark import session

spark = session.start(load({"spark_master": "local[1]"}, Path("/dev/null")))
log = spark._jvm.org.apache.logging.log4j.LogManager.getLogger("record")
log.warn(sys.argv[1])
log.error("the cause", spark._jvm.java.lang.RuntimeException(sys.argv[1]))
spark.stop()
"""


def test_spark_s_log_shows_messages_and_exceptions_as_text() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOGS, HOSTILE], env={**os.environ, "PYTHONIOENCODING": "utf-8"}, check=False,
        timeout=240, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    shown = done.stdout.decode()
    assert not ACTING.search(shown), repr(shown)
    assert shown.count("\ufffd]0;owned\ufffd\ufffd2J") == 2, shown
    assert shown.count("java.lang.RuntimeException") == 1, shown
