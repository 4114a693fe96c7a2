"""What the terminal shows, from sample statuses: it must fit 80 columns and say every state."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from demo_sample import sample_results
from lab.demo.live import LineView, LiveView, ModeStatus, histogram, histogram_axis, open_view
from lab.demo.plan import DemoPlan
from lab.demo.result import ModeResult
from lab.demo.table import result_table


def console(width: int, terminal: bool = True) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None, legacy_windows=False)


def printed(to: Console) -> str:
    assert isinstance(to.file, io.StringIO)
    return to.file.getvalue()


def sample_statuses() -> list[ModeStatus]:
    statuses = [
        ModeStatus(
            result.mode, "done", rate=1000, p50_ms=result.p50_ms, p99_ms=result.p99_ms, lag=12345,
            flagged=123456, rejected=12345, distribution=result.distribution,
        )
        for result in sample_results()
    ]  # fmt: skip
    statuses[2].state, statuses[2].elapsed_s, statuses[2].total_s = "measuring", 12.4, 30
    statuses[3] = ModeStatus("real-time")
    return statuses


@pytest.mark.parametrize("width", [80, 120])
def test_the_live_table_fits_and_cuts_nothing(width: int) -> None:
    to = console(width)
    to.print(LiveView(to, DemoPlan(), sample_statuses()).render())
    shown = printed(to)
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= width
    assert "measuring 12/30 s" in shown
    assert "waiting" in shown
    assert ("100    1 s" in shown) == (width == 120)  # the histogram where there is room for it


@pytest.mark.parametrize("width", [80, 120])
def test_the_final_table_fits_and_cuts_nothing(width: int) -> None:
    to = console(width)
    to.print(result_table(sample_results(), to.width))
    shown = printed(to)
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= width
    assert "exactly-once" in shown
    assert shown.count("3,000") == 4


def test_a_failed_mode_has_dashes_in_the_final_table() -> None:
    to = console(120)
    to.print(result_table([ModeResult("continuous", error="the filter ended")], to.width))
    row = next(line for line in printed(to).splitlines() if "continuous" in line)
    assert row.split()[1:] == ["\N{EN DASH}"] * 9


def test_without_a_terminal_each_state_is_a_line() -> None:
    to = console(80, terminal=False)
    status = ModeStatus("continuous", "measuring", total_s=30)
    view = open_view(to, DemoPlan(), [status])
    assert isinstance(view, LineView)
    with view:
        view.announce(status)
        status.state, status.detail, status.total_s = "failed", "[red] the filter ended " + "x" * 80, None
        view.announce(status)
    first, second = printed(to).splitlines()
    assert first.endswith("continuous: measuring 30 s")
    assert second.endswith("continuous: failed: [red] the filter ended " + "x" * 80)


def test_on_a_terminal_the_table_is_live() -> None:
    to = console(100)
    view = open_view(to, DemoPlan(), sample_statuses())
    with view:
        view.announce(sample_statuses()[0])
    assert "measuring 12/30 s" in printed(to)


def test_the_histogram_stands_under_its_axis() -> None:
    axis = histogram_axis()
    assert len(axis) == len(histogram({})) == 24
    for latency_ms, label in ((1, "1 ms"), (10, "10"), (100, "100"), (1000, "1 s")):
        assert histogram({latency_ms: 5}).index("█") == axis.index(label)


def test_a_single_slow_record_among_many_stays_visible() -> None:
    bars = histogram({2: 10_000, 500: 1, 60_000: 1})
    assert bars.count("█") == 1
    assert bars.count("▁") == 2
    assert bars[-1] == "▁"  # beyond the axis counts as its end


def test_nothing_measured_is_blank() -> None:
    assert histogram({}).strip() == ""
