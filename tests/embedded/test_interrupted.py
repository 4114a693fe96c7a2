"""Ctrl-C and SIGTERM end a program and its Java, at whatever moment they come."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from fraud_filter.home import HOME
from running import GOOD

#: Marks the processes of one test: Java inherits its environment, and lives in a session of its own.
_MARK = "FRAUD_TEST_INTERRUPTED"
_END_S = 60.0
#: A Java that has lost its program ends by itself, once it has begun.
_GRACE_S = 60.0
_VERBS = {
    "rules-check": ["rules", "check"],
    "rules-test": ["rules", "test", "payments.jsonl"],
    "train": ["train", "generated", "--out", "model", "--payments", "1000", "--trees", "1"],
    "checkpoint": ["checkpoint", "inspect", "checkpoint"],
    "run": ["run", "--source", "rate", "--sink", "console", "--mode", "micro-batch", "--checkpoint", "own"],
}
_rest = pytest.mark.exhaustive


def _left(mark: str) -> list[str]:
    """The processes of a test that live."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(_MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {process.name()}")
        except psutil.Error:
            continue
    return found


def _has_child(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).children())
    except psutil.Error:
        return False


@pytest.mark.parametrize(
    ("verb", "number", "after_s"),
    [
        ("rules-check", signal.SIGINT, 0.0),
        ("checkpoint", signal.SIGINT, 0.3),
        *(
            pytest.param(verb, number, after_s, marks=_rest)
            for verb in _VERBS
            for number in (signal.SIGINT, signal.SIGTERM)
            for after_s in (0.0, 0.3, 0.8, 1.5, 3.0)
        ),
    ],
)
def test_no_process_outlives_an_interrupted_program(
    java_home: Path,  # noqa: ARG001 - it is there
    tmp_path: Path,
    verb: str,
    number: signal.Signals,
    after_s: float,
) -> None:
    """`after_s` seconds after the program has started its first process."""
    (tmp_path / "payments.jsonl").write_text(f"{GOOD}\n".replace("'", '"'))
    (tmp_path / "checkpoint/offsets").mkdir(parents=True)
    mark = str(tmp_path)
    environment = {**os.environ, _MARK: mark, "SPARK_MASTER": "local[2]", "FRAUD_METRICS_PORT": "0"}
    environment |= {"FRAUD_RULES": str(HOME / "app/rules.yml"), "TMPDIR": str(tmp_path)}
    with (tmp_path / "log").open("wb") as log:
        program = subprocess.Popen(
            [sys.executable, "-m", "fraud_filter", *_VERBS[verb]],
            cwd=tmp_path, env=environment, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        while program.poll() is None and not _has_child(program.pid):
            time.sleep(0.01)
        time.sleep(after_s)
        program.send_signal(number)
        program.wait(_END_S)
        until = time.monotonic() + _GRACE_S
        while (left := _left(mark)) and time.monotonic() < until:
            time.sleep(0.2)
        shown = (tmp_path / "log").read_text(errors="replace")
        assert not left, shown
        assert "Traceback" not in shown
        assert "\tat " not in shown, shown
    finally:
        program.kill()
        for process in _left(mark):
            os.kill(int(process.split()[0]), signal.SIGKILL)
