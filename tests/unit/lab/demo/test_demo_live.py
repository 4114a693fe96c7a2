"""What the terminal shows, from sample statuses: it must fit 80 columns and say every state."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from lab.bench.names import MODE_NAMES
from lab.bench.result import RateResult, StartResult
from lab.demo.live import ModeStatus, live_table
from lab.demo.run import demo_load
from lab.harness.outcome import Audited

LOAD = demo_load(100, seconds=30, warmup_s=12)


def shown(statuses: list[ModeStatus], width: int) -> str:
    to = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None, legacy_windows=False)
    to.print(live_table(LOAD, statuses, time.monotonic()))
    assert isinstance(to.file, io.StringIO)
    return to.file.getvalue()


def ended(mode: str, p50_ms: float, p99_ms: float, flagged: int = 8, rejected: int = 0) -> StartResult:
    due = {"p50_ms": p50_ms, "p99_ms": p99_ms}
    rate = RateResult(100, 99.8, due=due, audit=Audited(0, 0, 0), flagged=flagged, rejected=rejected)
    return StartResult(mode, 1, (rate,))


def sample_statuses() -> list[ModeStatus]:
    statuses = [ModeStatus(mode, lag=12345) for mode in MODE_NAMES]
    for status in statuses[:2]:
        status.finish(ended(status.mode, 549.5, 893.2, 123456, 12345))
    statuses[2].enter("measuring", 30)
    statuses[2].began -= 12
    return statuses


def test_the_live_table_fits_and_cuts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 1000.0)  # no second passes until it is shown
    table = shown(sample_statuses(), 80)
    assert "…" not in table
    assert max(map(len, table.splitlines())) <= 80
    assert "measuring 12/30 s" in table
    assert "waiting" in table


def test_a_mode_that_has_ended_shows_what_was_measured() -> None:
    status = ModeStatus("continuous", lag=7)
    status.enter("measuring", 30)
    status.finish(StartResult("continuous", 1, error="[red] the filter ended"))
    assert "failed" in shown([status], 80)
    status.finish(ended("continuous", 2.1714, 9))
    assert shown([status], 80).split()[-8:] == ["continuous", "done", "99.8", "2.17", "9", "7", "8", "0"]
