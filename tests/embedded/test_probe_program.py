"""The probe as a program: its metrics over HTTP, its file, how it ends."""

from __future__ import annotations

import json
import re
import select
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from metrics_page import Page
from outputs import Outputs, large, latencies
from running import PROGRAM, Stage, until


def _argv(stage: Stage, *words: str) -> list[str]:
    return [*PROGRAM, "probe", *stage.options, *words]


class Program:
    """The probe as a program; `port` is where it serves its metrics."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        first = self.line()
        found = re.fullmatch(r"event=probe_started mode=(\S+) metrics=http://127\.0\.0\.1:(\d+)/metrics\n", first)
        assert found, first
        self.mode, self.port = found[1], int(found[2])

    def line(self, timeout_s: float = 60) -> str:
        """The next line that it prints."""
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], timeout_s)
        assert readable, f"no line within {timeout_s} s"
        return self.process.stdout.readline()


@contextmanager
def _running(stage: Stage, *words: str) -> Iterator[Program]:
    argv = _argv(stage, "--probe-port", "0", *words)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1) as process:
        try:
            yield Program(process)
        finally:
            if process.poll() is None:
                process.kill()


def _figures(line: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in line.split())


def test_the_program_ends_after_its_seconds_with_figures_as_json(outputs: Outputs) -> None:
    payments = outputs.pay(*large(20))
    decided = outputs.flag(payments)
    began = time.monotonic()
    argv = _argv(outputs.stage, "--probe-port", "0", "--seconds", "3.9", "--interval", "1", "--from-beginning")
    ran = subprocess.run([*argv, "--json"], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert time.monotonic() - began >= 3.9
    lines = [_figures(line) for line in ran.stderr.splitlines() if line.startswith("event=")]
    told = lines[1:-1]
    assert 0 < len(told) <= 3
    assert [line["event"] for line in lines] == ["probe_started", *["probe"] * len(told), "probe_stopped"]
    assert sum(int(line["flagged"]) for line in told) == 20
    assert sum(float(line["records_per_second"]) for line in told) == pytest.approx(20)
    expected = latencies(payments, decided)
    assert lines[-1]["max_ms"] == str(max(expected))
    figures = json.loads(ran.stdout)
    assert {name: figures[name] for name in ("mode", "query", "flagged", "rejected", "duplicates", "count")} == {
        "mode": "real-time", "query": "fraud-filter", "flagged": 20, "rejected": 0, "duplicates": 0, "count": 20,
    }  # fmt: skip
    assert figures["p50_ms"] == sorted(expected)[9]
    assert figures["distribution"] == {str(latency): count for latency, count in sorted(Counter(expected).items())}
    assert figures["source_offsets"] == {"0": 19}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_program_with_a_summary(outputs: Outputs, number: signal.Signals) -> None:
    with _running(outputs.stage, "--interval", "60") as program:
        outputs.flag(outputs.pay(*large(2)))
        flagged = Page(program.port)
        until(lambda: flagged.values("fraud_filter_flagged_records_total") == {"": 2}, "two flagged records")
        program.process.send_signal(number)
        out, error = program.process.communicate(timeout=30)
    assert program.process.returncode == 0, error
    summary = _figures(out.splitlines()[-1])
    assert (summary["event"], summary["flagged"], summary["duplicates"]) == ("probe_stopped", "2", "0")
    assert "p99_ms" in summary
    assert "Traceback" not in error
