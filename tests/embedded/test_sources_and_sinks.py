"""The rate source, and the console and memory sinks, in each mode that takes them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from fraud_filter.modes import MODES
from lab.harness.processes import Child
from running import wait_until

RATE_MODES = [name for name, mode in MODES.items() if "rate" in mode.sources and "console" in mode.sinks]


def _run(directory: Path, mode: str, sink: str) -> Child:
    argv = [
        sys.executable, "-m", "fraud_filter", "run", "--mode", mode, "--source", "rate", "--sink", sink,
        "--rate-rows-per-second", "20", "--spark-master", "local[4]", "--continuous-interval", "1 second",
        "--checkpoint", str(directory / "checkpoint"), "--metrics-port", "0",
        "--stop-timeout-s", "15",  # what hangs at the stop is in the log before the test gives up
    ]  # fmt: skip
    return Child("the filter", argv, log=directory / "run.log")


@pytest.mark.parametrize("mode", RATE_MODES)
def test_the_console_shows_flagged_payments_of_the_rate_source(tmp_path: Path, mode: str) -> None:
    with _run(tmp_path, mode, "console") as program:

        def shown() -> list[str]:
            return [line for line in program.tail(500) if line.startswith("|payments.flagged")]

        wait_until(lambda: len(shown()) >= 5, "five flagged payments on the console", program)
        assert any(line.startswith("Batch: ") for line in program.tail(500))
        assert program.stop(30) == 0, program.tail()
    topic, _key, value, headers, *_ = (cell.strip() for cell in shown()[0].strip("|").split("|"))
    assert topic == "payments.flagged"
    assert json.loads(value)["rules"]
    assert "source.topic=rate" in headers


@pytest.mark.parametrize("mode", RATE_MODES)
def test_the_memory_sink_fills_a_table(tmp_path: Path, mode: str) -> None:
    """In a process of its own: a table in memory can be read only where the query runs."""
    code = """
import os, signal, sys, time
from fraud_filter import supervisor, config
mode, checkpoint = sys.argv[1:]
settings = config.load({"mode": mode, "source": "rate", "sink": "memory", "checkpoint": checkpoint,
    "spark_master": "local[4]", "rate_rows_per_second": 20, "metrics_port": 0, "continuous_interval": "1 second"})
def look(query):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        rows = query._jsq.sparkSession().sql("SELECT count(*) FROM fraud_filter WHERE topic = 'payments.flagged'")
        if rows.collectAsList().get(0).get(0) >= 5:
            print("filled", flush=True)
            break
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)
supervisor.run(settings, on_start=look)
"""
    program = Child("the filter", [sys.executable, "-c", code, mode, str(tmp_path / "c")], log=tmp_path / "run.log")
    program.start()
    assert program.wait(120) == 0, program.tail()
    assert "filled" in program.tail(200), program.tail()
