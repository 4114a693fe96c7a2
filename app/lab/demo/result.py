"""What a demo found out: one `ModeResult` a mode, and the statistics over latency distributions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fraud_filter.config import ModeName
from fraud_filter.metrics.latency import Second
from lab.harness.outcome import NOT_AUDITED, Audited

#: A latency distribution: end-to-end latency in whole milliseconds -> number of decisions.
Distribution = Mapping[int, int]


@dataclass(frozen=True)
class ModeResult:
    """What was measured in one mode. None means not measured, never zero.

    Latencies are of the measured seconds, in milliseconds; `measured` says of how many decisions, flagged and rejected.
    `flagged`, `rejected` and `audit` cover every payment of the run, warm-up included. `rate_kept` is payments per
    second on the input topic while measuring; `backlog` the payments behind the newest one that had come out when the
    measurement began; `first_output_s` the seconds from the start of the filter to its first output.
    """

    mode: ModeName
    engine_guarantee: str = ""
    delivery_guarantee: str = ""
    measured: int = 0
    p50_ms: float | None = None
    p90_ms: float | None = None
    p99_ms: float | None = None
    p999_ms: float | None = None
    max_ms: float | None = None
    flagged: int | None = None
    audit: Audited = NOT_AUDITED
    rejected: int | None = None
    rate_kept: float | None = None
    backlog: int | None = None
    first_output_s: float | None = None
    distribution: Distribution = field(default_factory=dict)
    timeline: tuple[Second, ...] = ()
    error: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the mode ran to its end and its audit found nothing lost and nothing unexpected."""
        return self.error is None and self.audit.ok


def quantile(distribution: Distribution, q: float) -> int | None:
    """The latency in milliseconds that a share `q` (0 to 1) does not exceed; None when there are none."""
    total = sum(distribution.values())
    if total == 0:
        return None
    seen, latency_ms = 0, 0
    for latency_ms in sorted(distribution):
        seen += distribution[latency_ms]
        if seen >= q * total:
            break
    return latency_ms


def share_within(distribution: Distribution, limit_ms: float) -> float | None:
    """The share (0 to 1) of the records with at most `limit_ms` milliseconds; None when there are none."""
    total = sum(distribution.values())
    if total == 0:
        return None
    return sum(count for latency_ms, count in distribution.items() if latency_ms <= limit_ms) / total


def second_between(second: int, before: Distribution, after: Distribution) -> Second:
    """What the measurement's second number `second` added: the part of `after` that is not in `before`."""
    added = {
        latency_ms: count - before.get(latency_ms, 0)
        for latency_ms, count in after.items()
        if count > before.get(latency_ms, 0)
    }
    return Second(
        second=second,
        decisions=sum(added.values()),
        p50_ms=quantile(added, 0.5),
        max_ms=max(added, default=None),
    )
