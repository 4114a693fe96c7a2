"""Turns the payments of one rate into its figures."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from hdrh.histogram import HdrHistogram

from lab.bench.percentiles import PERCENTILES, counted, summarise
from lab.bench.readback import Payments
from lab.bench.result import RateResult
from lab.harness.sampler import Sampler

#: One microsecond to one hour, three digits.
_DUE_RANGE = (1, 3_600_000_000, 3)
#: Kafka cuts its stamp down to the millisecond, the due time is exact: half a millisecond is missing on average.
_CUT_US = 500


def evaluate(rate: float, payments: Payments, sampler: Sampler, *, settle_s: float, seconds: float) -> RateResult:
    """The figures of one rate.

    Args:
        settle_s: left out at the beginning.
        seconds: measured after that.
        payments: all that were sent at this rate, those of the settling included.
        sampler: which has watched the programs meanwhile, the contender under that name.
    """
    began_us = int(payments.due_us.min()) + round(settle_s * 1e6)
    ended_us = began_us + round(seconds * 1e6)
    measured = payments.select((payments.due_us >= began_us) & (payments.due_us < ended_us))
    decided = measured.select(measured.decided_ms > 0)
    latency_ms = np.maximum(decided.decided_ms - decided.appended_ms, 0)
    append_ms = counted(latency_ms)
    due, encoded = _from_due(decided)
    lag, behind_s = _late(payments)
    spans = {
        name: sampler.cpu_between(name, began_us / 1e6, ended_us / 1e6) for name in ("contender", "broker", "generator")
    }
    return RateResult(
        rate=rate,
        kept_rate=_kept(measured),
        payments=len(measured),
        decisions=len(decided),
        append=summarise(append_ms),
        due=due,
        append_ms=append_ms,
        due_us_hdr=encoded,
        cpu_s=spans,
        rss_mib=sampler.peak_rss_mib("contender"),
        stolen_share=sampler.stolen_between(began_us / 1e6, ended_us / 1e6),
        backlog=_waiting(payments, began_us // 1000),
        lag=lag,
        behind_s=behind_s,
        gap_s=_longest_gap(payments),
    )


def _from_due(decided: Payments) -> tuple[Mapping[str, float | None], str]:
    """Percentiles in milliseconds from the due time on, and the histogram they are from."""
    histogram = HdrHistogram(*_DUE_RANGE)
    for latency_us in np.maximum(decided.decided_ms * 1000 + _CUT_US - decided.due_us, 1).tolist():
        histogram.record_value(latency_us)
    if not len(decided):
        return summarise({}), ""
    figures: dict[str, float | None] = {
        name: histogram.get_value_at_percentile(percentile) / 1000 for name, percentile in PERCENTILES.items()
    }
    return {**figures, "max_ms": histogram.get_max_value() / 1000}, histogram.encode().decode()


def _kept(measured: Payments) -> float | None:
    """Payments per second on the input topic; None for too few of them."""
    if len(measured) < 2:
        return None
    span_ms = int(measured.appended_ms.max() - measured.appended_ms.min())
    return round((len(measured) - 1) / max(span_ms, 1) * 1000, 1)


def _waiting(payments: Payments, at_ms: int) -> int:
    """Payments that had come by then after the newest one that was decided by then."""
    there = payments.select(payments.appended_ms <= at_ms)
    decided = there.select((there.decided_ms > 0) & (there.decided_ms <= at_ms))
    return int((there.appended_ms > decided.appended_ms.max(initial=0)).sum())


def _longest_gap(payments: Payments) -> float:
    """The longest time between two payments' decisions, in seconds."""
    moments = np.sort(payments.decided_ms[payments.decided_ms > 0])
    return float(np.diff(moments).max(initial=0)) / 1000


def _late(payments: Payments) -> tuple[int, float]:
    """Decisions that were to come when the last payment was appended, and the seconds until the last of them."""
    end_ms = int(payments.appended_ms.max())
    late = payments.decided_ms[payments.decided_ms > end_ms]
    return len(late), float(late.max() - end_ms) / 1000 if len(late) else 0.0
