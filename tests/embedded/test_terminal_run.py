"""What records hold never acts on a terminal: Spark's own log, fed with escapes."""

from __future__ import annotations

import os
import re
import subprocess
import sys

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
        timeout=120, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    shown = done.stdout.decode()
    assert not ACTING.search(shown), repr(shown)
    assert shown.count("\ufffd]0;owned\ufffd\ufffd2J") == 2, shown
    assert shown.count("java.lang.RuntimeException") == 1, shown
