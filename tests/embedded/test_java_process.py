"""The Java process of the supervisor: its end when it hangs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

#: In a program of its own: what the end makes PySpark forget, other tests still use.
_HANGS_AT_ITS_STOP = """
import time
from fraud_filter import session
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
        [sys.executable, "-c", _HANGS_AT_ITS_STOP], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "Full thread dump" in ran.stdout
    assert "ended True -9" in ran.stdout
