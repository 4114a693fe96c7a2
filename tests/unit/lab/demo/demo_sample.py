"""Sample results for the tests of the demo's views and reports: made up with a seed, never measured."""

from __future__ import annotations

import random
from pathlib import Path

from fraud_filter.metrics.latency import Second
from lab.bench.names import MODE_NAMES
from lab.bench.plan import BenchPlan
from lab.bench.results.percentiles import counted, summarise
from lab.bench.results.result import RateResult, StartResult
from lab.demo.result import ModeResult
from lab.demo.run import demo_plan
from lab.harness.outcome import Audited

#: mode -> median in ms, spread of the logarithm, share of stragglers, their median in ms
_SHAPES = {
    "micro-batch": (400, 0.30, 0.01, 700),
    "async-progress": (260, 0.30, 0.01, 500),
    "continuous": (6, 0.35, 0.02, 30),
    "real-time": (2.6, 0.25, 0.01, 12),
}
CLEAN = Audited(0, 0, 0)


def sample_plan(output: Path = Path()) -> BenchPlan:
    """All modes, as the verb plans them by default."""
    return demo_plan(contenders=MODE_NAMES, rates=(100,), seconds=30, warmup_s=12, output=output)


def sample_latencies(mode: str) -> list[int]:
    """1,500 latencies that look like a good run of `mode`."""
    draw = random.Random(mode)
    median, spread, stragglers, slow = _SHAPES[mode]
    return [int((slow if draw.random() < stragglers else median) * draw.lognormvariate(0, spread)) for _ in range(1500)]


def sample_result(mode: str, latencies: list[int] | None = None, audit: Audited = CLEAN) -> ModeResult:
    """A result with these latencies of its measured seconds, those of `sample_latencies` by default."""
    drawn = sample_latencies(mode) if latencies is None else latencies
    seconds = [summarise(counted(drawn[at : at + 50])) for at in range(0, len(drawn), 50)]
    rate = RateResult(
        rate=100,
        kept_rate=99.8,
        decisions=len(drawn),
        append=summarise(counted(drawn)),
        append_ms=counted(drawn),
        timeline=tuple(Second(at + 1, 50, one["p50_ms"], one["max_ms"]) for at, one in enumerate(seconds)),
        backlog=3,
        audit=audit,
    )
    return ModeResult(StartResult(mode, 1, (rate,), first_decision_s=9.4), audit, 2 * len(drawn), 31)


def sample_results() -> list[ModeResult]:
    """One sample result for each mode."""
    return [sample_result(mode) for mode in MODE_NAMES]


def failed(error: str) -> ModeResult:
    """A mode that did not get as far as its measurement."""
    return ModeResult(StartResult("continuous", 1, error=error))
