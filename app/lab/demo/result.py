"""What came of one mode: its start in the bench, the audit of its whole run, and its figures as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fraud_filter.audit.result import Detected, FeatureCounts, plain
from fraud_filter.modes import MODES
from lab.bench.results.percentiles import PERCENTILES
from lab.bench.results.result import RateResult, StartResult
from lab.harness.outcome import NOT_AUDITED, Audited


@dataclass(frozen=True)
class ModeResult:
    """A mode's `start`; `audit`, `flagged` and `rejected` cover every payment of its run, warm-up included."""

    start: StartResult
    audit: Audited = NOT_AUDITED
    flagged: int | None = None
    rejected: int | None = None
    features: FeatureCounts | None = None
    detection: Detected | None = None

    @property
    def mode(self) -> str:
        """Its name."""
        return self.start.contender

    @property
    def measured(self) -> RateResult | None:
        """What was measured; None: nothing was."""
        return next(iter(self.start.rates), None)

    @property
    def ok(self) -> bool:
        """Whether the mode ran to its end, and nothing was lost or unexpected."""
        return self.start.ok and self.audit.ok

    @property
    def problem(self) -> str:
        """Why the mode does not count as passed, in one line; empty when it does.

        Of an error that quotes a log, that is what it says itself and the last line of the log.
        """
        if self.start.error is not None:
            first, *quoted = self.start.error.strip().splitlines()
            return f"{first.removesuffix('; its last lines:')}: {quoted[-1].strip()}" if quoted else first
        if self.ok:
            return ""
        if self.audit == NOT_AUDITED:
            return "was not audited"
        return f"the audit found {self.audit.lost} lost and {self.audit.unexpected} unexpected payments"


def figures(result: ModeResult) -> dict[str, Any]:
    """A result as plain data. Times are in the unit their name ends with; None is not measured, never zero.

    `measured` decisions came in the measured seconds; `rate_kept` is payments per second on the input topic meanwhile,
    and `backlog` the payments behind the newest decided one when they began. `first_output_s` is from the start of the
    filter to its first output. `features` is None where the rules that ran have none, `detection` where nothing was
    labelled. `distribution` has the number of decisions for each latency in whole milliseconds.
    """
    mode = next(mode for name, mode in MODES.items() if name == result.mode)
    one, features = result.measured, result.features
    return {
        "engine_guarantee": mode.engine_guarantee,
        "delivery_guarantee": mode.delivery_guarantee,
        "measured": one.decisions if one else 0,
        **{name: one.append[name] if one else None for name in (*PERCENTILES, "max_ms")},
        "flagged": result.flagged,
        **asdict(result.audit),
        "rejected": result.rejected,
        "features": features and {"decisions": features.decisions, "differing": features.differing},
        "detection": plain(result.detection),
        "rate_kept": one.kept_rate if one else None,
        "backlog": one.backlog if one else None,
        "first_output_s": result.start.first_decision_s,
        "distribution": {str(ms): count for ms, count in one.append_ms.items()} if one else {},
        "timeline": [asdict(second) for second in one.timeline] if one else [],
        **({} if result.start.error is None else {"error": result.start.error}),
        "ok": result.ok,
    }


def share_within(distribution: Mapping[int, int], limit_ms: float) -> float | None:
    """The share (0 to 1) of the decisions with at most `limit_ms` milliseconds; None when there are none."""
    total = sum(distribution.values())
    if total == 0:
        return None
    return sum(count for latency_ms, count in distribution.items() if latency_ms <= limit_ms) / total
