"""Sample results for the tests of the bench's report: made up with a seed, never measured."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

from lab.bench.plan import Load
from lab.bench.report import Report
from lab.bench.result import RateResult, StartResult
from lab.bench.statistics import STEP_US, summarise
from lab.harness.machine import describe_machine, describe_versions
from lab.harness.outcome import Audited

#: contender -> median in ms.
MEDIANS = {"micro-batch": 400.0, "real-time": 2.6, "streams": 2.0}
CHANGED = "real-time:linger_ms=5"
ROUNDS = 3


def sample_rate(name: str, rate: float, seed: int, **changes: Any) -> RateResult:
    """One rate of one round of a contender; `changes` replace single fields."""
    draw = random.Random(f"{name} {rate} {seed}")
    median = MEDIANS[name.partition(":")[0]] * (1 + seed / 100)
    begun_ms = (median * draw.lognormvariate(0, 0.3) - draw.random() for _ in range(1000))
    counts = dict(Counter(int(latency_ms * 1000 / STEP_US) for latency_ms in begun_ms))
    result = RateResult(
        rate=rate,
        kept_rate=rate * 0.997,
        payments=2000,
        decisions=1000,
        due=summarise(counts),
        due_20us=counts,
        append_mean_ms=median,
        cpu_s={"contender": 4.0, "broker": 1.0, "generator": 0.5},
        rss_mib=500.0,
        lag=1,
        decided_share=1.0,
        audit=Audited(0, 0, 0),
        flagged=1500,
        rejected=31,
    )
    return replace(result, **changes)


def sample_starts() -> list[StartResult]:
    """Three rounds of three contenders at two rates."""
    return [
        StartResult(name, number, tuple(sample_rate(name, rate, number) for rate in (100, 1000)), 9.5)
        for number in range(1, ROUNDS + 1)
        for name in MEDIANS
    ]


def sample_report(starts: list[StartResult] | None = None, **changes: Any) -> Report:
    """A report of the sample starts."""
    report = Report(
        starts=sample_starts() if starts is None else starts,
        load=Load(rates=(100, 1000)),
        versions=describe_versions(kafka="4.1.1", java="17.0.15"),
        machine=describe_machine(),
        settings={"rates": "100, 1000", "rounds": ROUNDS, "warmup_s": 12},
        took_s=1234.56,
    )
    return replace(report, **changes)
