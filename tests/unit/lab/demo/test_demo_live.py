"""What the terminal shows, from sample statuses: it must fit 80 columns and say every state."""

from __future__ import annotations

import io
import time

from rich.console import Console

from lab.bench.names import MODE_NAMES
from lab.bench.result import RateResult, StartResult
from lab.demo.live import ModeStatus, live_table, open_view
from lab.demo.run import demo_load
from lab.harness.outcome import Audited

LOAD = demo_load(100, seconds=30, warmup_s=12)


def console(width: int, terminal: bool = True) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None, legacy_windows=False)


def printed(to: Console) -> str:
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


def test_the_live_table_fits_and_cuts_nothing() -> None:
    to = console(80)
    to.print(live_table(LOAD, sample_statuses(), time.monotonic()))
    shown = printed(to)
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "measuring 12/30 s" in shown
    assert "waiting" in shown


def test_without_a_terminal_each_state_is_a_line() -> None:
    to = console(80, terminal=False)
    status = ModeStatus("continuous")
    with open_view(to, LOAD, [status]) as announce:
        status.enter("measuring", 30)
        announce(status)
        failed = StartResult("continuous", 1, error="[red] the filter ended " + "x" * 80)
        for start in (failed, ended("continuous", 2.1714, 9)):
            status.finish(start)
            announce(status)
    first, second, third = printed(to).splitlines()
    assert first.endswith("continuous: measuring 30 s")
    assert second.endswith("continuous: failed: [red] the filter ended " + "x" * 80)
    assert third.endswith("done: p50 2.17 ms, p99 9 ms, 8 flagged, 0 lost, 0 duplicated, 0 unexpected")
