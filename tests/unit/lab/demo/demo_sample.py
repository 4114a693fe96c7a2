"""Sample results for the tests of the demo's views and reports: made up with a seed, never measured."""

from __future__ import annotations

import random
from collections import Counter

from fraud_filter.config import ModeName
from fraud_filter.metrics.latency import Second
from fraud_filter.modes import MODES
from lab.demo.plan import ALL_MODES
from lab.demo.result import ModeResult, quantile, second_between
from lab.harness.outcome import Audited

#: mode -> median in ms, spread of the logarithm, share of stragglers, their median in ms
_SHAPES = {
    "micro-batch": (400, 0.30, 0.01, 700),
    "async-progress": (260, 0.30, 0.01, 500),
    "continuous": (6, 0.35, 0.02, 30),
    "real-time": (2.6, 0.25, 0.01, 12),
}


def sample_result(mode: ModeName, *, seconds: int = 30, per_second: int = 50, **changes: object) -> ModeResult:
    """A result that looks like a good run of `mode`; `changes` replace single fields."""
    generator = random.Random(mode)
    median, spread, stragglers, slow = _SHAPES[mode]
    seen: Counter[int] = Counter()
    timeline: list[Second] = []
    for second in range(1, seconds + 1):
        before = seen.copy()
        for _ in range(per_second):
            around = slow if generator.random() < stragglers else median
            seen[int(around * generator.lognormvariate(0, spread))] += 1
        timeline.append(second_between(second, before, seen))
    fields: dict[str, object] = {
        "mode": mode,
        "engine_guarantee": MODES[mode].engine_guarantee,
        "delivery_guarantee": MODES[mode].delivery_guarantee,
        "measured": seen.total(),
        "p50_ms": quantile(seen, 0.5),
        "p90_ms": quantile(seen, 0.9),
        "p99_ms": quantile(seen, 0.99),
        "p999_ms": quantile(seen, 0.999),
        "max_ms": max(seen),
        "flagged": 2 * seen.total(),
        "audit": Audited(0, 0, 0),
        "rejected": 31,
        "rate_kept": 99.8,
        "backlog": 3,
        "first_output_s": 9.4,
        "distribution": dict(seen),
        "timeline": tuple(timeline),
    }
    return ModeResult(**(fields | changes))  # type: ignore[arg-type]


def sample_results() -> list[ModeResult]:
    """One sample result for each mode."""
    return [sample_result(mode) for mode in ALL_MODES]
