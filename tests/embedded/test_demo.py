"""The demo as a user runs it: real broker, real Spark, the report, and what an interruption leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from lab.bench.table import rounded

#: Seconds that may pass until all have ended.
ENDED_S = 60
#: A short run of the fastest mode: enough records for percentiles, few enough seconds for a test.
SHORT = ("--modes", "real-time", "--seconds", "6", "--warmup", "4")


class Demo:
    """`fraud-filter demo` as a process of its own, with a temporary directory of its own."""

    def __init__(self, directory: Path, *arguments: str, **environment: str) -> None:
        self.temporary = directory / "tmp"
        self.temporary.mkdir()
        self.output = directory / "out"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fraud_filter", "demo", *arguments, "--output", str(self.output)],
            cwd=directory,  # no .env
            env={**os.environ, "TMPDIR": str(self.temporary), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.seen = ""

    def wait_for(self, text: str) -> None:
        """Reads the output up to the line that holds `text`."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.seen += line
            if text in line:
                return
        pytest.fail(f"the demo ended before {text!r}:\n{self.seen}")

    def finish(self, timeout_s: float) -> int:
        """Waits for the end; returns the exit code."""
        output, _ = self.process.communicate(timeout=timeout_s)
        self.seen += output
        return self.process.returncode

    def descendants(self) -> list[psutil.Process]:
        """Every process that the demo has started, directly or not."""
        return psutil.Process(self.process.pid).children(recursive=True)


Starter = Callable[..., Demo]


def still_running(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those of the processes that have not ended. A zombie has; to reap it when its parent is gone is up to init."""
    left = psutil.wait_procs(processes, timeout=ENDED_S)[1]
    return [process for process in left if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    """Starts demos; what a failed test leaves running is stopped."""
    started: list[Demo] = []

    def start_demo(*arguments: str, **environment: str) -> Demo:
        started.append(Demo(tmp_path, *arguments, **environment))
        return started[-1]

    yield start_demo
    for demo in started:
        if demo.process.poll() is None:
            demo.process.terminate()
            demo.process.wait(60)


@pytest.mark.timeout(240)
def test_a_demo_measures_audits_reports_and_leaves_nothing(start: Starter) -> None:
    demo = start(*SHORT)
    demo.wait_for("real-time: 100 payments/s")
    started = demo.descendants()
    assert demo.finish(200) == 0, demo.seen

    report = json.loads((demo.output / "demo-report.json").read_text())
    (mode,) = report["results"]
    assert report["ok"] is True
    assert (mode["lost"], mode["duplicated"], mode["unexpected"]) == (0, 0, 0)
    assert mode["flagged"] > mode["decisions"] > 200  # half of 100 payments/s for 6 s, and the warm-up's
    assert mode["rejected"] > 0
    assert mode["features"]["decisions"] > 0
    assert mode["features"]["differing"] == 0
    assert mode["detection"]["velocity"]["recall"] > mode["detection"]["rules"]["recall"]
    assert mode["kept_rate"] == pytest.approx(100, rel=0.1)
    assert 0 < mode["due_p50_ms"] <= mode["due_p99_ms"] <= mode["due_max_ms"]
    assert report["versions"]["kafka"].startswith("4.")
    assert report["versions"]["java"].startswith(("17", "21"))
    assert "real-time" in (demo.output / "demo-report.html").read_text()

    latency = f"p50 {rounded(mode['due_p50_ms'])} ms, p99 {rounded(mode['due_p99_ms'])} ms"
    assert f"round 1, real-time, 100/s: {latency}, 0 lost, 0 duplicated, 0 unexpected\n" in demo.seen
    assert f"written: {(demo.output / 'demo-report.html').resolve()}" in demo.seen
    assert "Traceback" not in demo.seen
    assert still_running(started) == []
    assert list(demo.temporary.iterdir()) == []


@pytest.mark.timeout(240)
def test_a_mode_that_fails_is_reported_with_its_reason_and_the_next_one_runs(start: Starter, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text("rules:\n  - name: broken\n    when: no_such_field > 1\n")
    demo = start("--modes", "continuous,real-time", "--seconds", "3", "--warmup", "1", FRAUD_RULES=str(rules))
    assert demo.finish(200) == 1

    report = json.loads((demo.output / "demo-report.json").read_text())
    assert report["ok"] is False
    assert [start["contender"] for start in report["rounds"]] == ["continuous", "real-time"]
    for one in report["rounds"]:
        assert "no_such_field" in one["error"]
        assert one["rates"] == []
        assert f"round 1, {one['contender']}: {one['error']}\n" in demo.seen
    assert "continuous failed." in (demo.output / "demo-report.html").read_text()
    assert "logs are kept in" in demo.seen
    (kept,) = demo.temporary.iterdir()
    assert {path.name for path in (kept / "logs").iterdir()} >= {
        "continuous-1.log",
        "real-time-1.log",
    }
    assert "Traceback" not in demo.seen


@pytest.mark.timeout(240)
def test_an_interrupted_demo_stops_everything_and_leaves_nothing(start: Starter) -> None:
    demo = start(*SHORT)
    demo.wait_for("broker at ")
    started = demo.descendants()
    assert any("kafka.Kafka" in process.cmdline() for process in started)
    demo.process.send_signal(signal.SIGINT)
    assert demo.finish(60) == 130
    assert still_running(started) == []
    assert list(demo.temporary.iterdir()) == []
    assert not (demo.output / "demo-report.json").exists()
    assert "Traceback" not in demo.seen
