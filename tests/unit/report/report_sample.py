"""Sample data for the tests of the report's plots and page: made up, never measured."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from fraud_filter.report.data import Figures, ReportData
from fraud_filter.report.events import Event, Span
from fraud_filter.report.prometheus import Series
from fraud_filter.report.window import Window

START, SECONDS = 1_790_000_000, 600
WINDOW = Window(START, START + SECONDS, scrape_s=5)


def curve(value: Callable[[float], float], start: float = 0, end: float = SECONDS) -> Series:
    """A series with `value(second)` at each step of the window from one second to another."""
    seconds = [second for second in range(0, SECONDS + 1, WINDOW.step_s) if start <= second <= end]
    return Series({}, tuple((START + second, value(second)) for second in seconds))


def figures(mode: str, **changes: object) -> Figures:
    """Figures of one mode."""
    known: dict[str, object] = {
        "mode": mode, "seconds": 290, "p50_ms": 4.217, "p95_ms": 8.1, "p99_ms": 18.04, "within": 0.99983,
        "objective_ms": 20.0, "rate": 99.97,
        "lag": 712, "flagged": 14_321, "rejected": 287, "duplicates": 0, "restarts": 0,
    }  # fmt: skip
    return Figures(**(known | changes))  # type: ignore[arg-type]


def sample_data(**changes: object) -> ReportData:
    """Five minutes of micro-batches, then five in continuous mode; `changes` replace single fields."""
    data = ReportData(
        window=WINDOW,
        query="fraud-filter",
        address="http://127.0.0.1:9090",
        total=figures("all", p99_ms=655.3, within=0.5049, objective_ms=None),
        modes=[
            figures("micro-batch", p50_ms=401.5, p99_ms=690.8, within=0.0, objective_ms=1000.0),
            figures("continuous", duplicates=31),
        ],
        spans=[Span("micro-batch", START, START + 290), Span("continuous", START + 300, START + SECONDS)],
        events=[Event(START + 300, "switched", "mode switched from micro-batch to continuous")],
        distributions={
            "micro-batch": {0.2: 0, 0.3: 120, 0.5: 700, 0.75: 230, 1.0: 9, math.inf: 0},
            "continuous": {0.001: 3, 0.004: 500, 0.006: 420, 0.02: 70, 0.05: 0, 60.0: 2, math.inf: 1},
        },
        latency_s={
            f"p{rank}": curve(lambda second, by=by: by * (0.4 if second < 295 else 0.004))  # type: ignore[misc]
            for rank, by in ((50, 1.0), (95, 1.5), (99, 2.1))
        },
        rates={
            "input": curve(lambda second: 100 + second % 7),
            "flagged": curve(lambda second: 5 + second % 2),
            "rejected": curve(lambda _: 0.1, 100),
        },
        lags={str(number): curve(lambda second, n=number: second % 70 * (n + 1)) for number in range(2)},  # type: ignore[misc]
        phases_s={
            "triggerExecution": curve(lambda _: 0.4, end=290),
            "addBatch": curve(lambda _: 0.2, end=290),
            "queryPlanning": curve(lambda _: 0.05, end=290),
            "walCommit": curve(lambda _: 0.08, end=290),
        },
        since_progress_s=curve(lambda second: second % 5 + 0.5),
    )
    return replace(data, **changes)  # type: ignore[arg-type]
