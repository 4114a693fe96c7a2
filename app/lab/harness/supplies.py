"""What an embedded run needs before it begins: Java, the jars, Spark's class archive; got where they are missing."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from fraud_filter.home import HOME
from fraud_filter.java import class_archive
from fraud_filter.java.jars import resolve_jars
from fraud_filter.text.logs import get_logger
from lab.harness.java import Say, require_java

#: The jars of the broker, and those that Spark's Kafka connector adds to the pyspark package.
KAFKA_LOCK = HOME / "kafka/jgo.lock.toml"
SPARK_LOCK = HOME / "spark/jgo.lock.toml"
_MAKE_TIMEOUT_S = 300

_log = get_logger(__name__)


def get_supplies(say: Say) -> tuple[Path, list[Path]]:
    """A usable Java's home, and the broker's jars; what Spark needs is there then, too.

    Raises:
        FraudFilterError: a jar can't be fetched, or is not the one that was locked.
        UsageError: there is no Java and none can be downloaded.
    """
    java_home = require_java(say)
    jars = resolve_jars(KAFKA_LOCK)
    resolve_jars(SPARK_LOCK)  # now, and not unseen in the first query
    ensure_class_archive(java_home, say)
    return java_home, jars


def ensure_class_archive(java_home: Path, say: Say) -> None:
    """Makes the archive of Spark's classes for this Java, unless it is there. One process at a time does.

    Where it can't be made, programs start without one, only slower; the reason is logged.

    Args:
        say: told before something that takes about 20 seconds.
    """
    path = class_archive.archive_of(java_home)
    if path is None or path.exists() or not os.access(path.parent, os.W_OK):
        return
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return
        say("preparing Spark's classes for faster starts (once)")
        argv: list[str | Path] = [sys.executable, HOME / "spark/class_archive.py", path]
        try:
            ran = subprocess.run(
                argv, env={**os.environ, "JAVA_HOME": str(java_home)}, capture_output=True, text=True, check=False,
                timeout=_MAKE_TIMEOUT_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            _log.warning("class_archive_failed", reason=f"not made within {_MAKE_TIMEOUT_S} s")
            return
        if ran.returncode:
            _log.warning("class_archive_failed", reason=(ran.stderr.strip().splitlines() or ["unknown"])[-1])
