"""Turns the payments of one rate into its figures."""

from __future__ import annotations

import numpy as np

from lab.bench.readback import Payments
from lab.bench.result import RateResult
from lab.bench.statistics import count_latencies, summarise
from lab.harness.sampler import Sampler


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
    counts = count_latencies(decided.due_us, decided.decided_ms)
    lag, behind_s = _late(payments)
    spans = {
        name: sampler.cpu_between(name, began_us / 1e6, ended_us / 1e6) for name in ("contender", "broker", "generator")
    }
    return RateResult(
        rate=rate,
        kept_rate=_kept(measured),
        payments=len(measured),
        decisions=len(decided),
        due=summarise(counts),
        due_20us=counts,
        append_mean_ms=_mean_since_append(decided),
        cpu_s=spans,
        rss_mib=sampler.peak_rss_mib("contender"),
        stolen_share=sampler.stolen_between(began_us / 1e6, ended_us / 1e6),
        lag=lag,
        behind_s=behind_s,
        gap_s=_longest_gap(payments),
    )


def _mean_since_append(decided: Payments) -> float | None:
    """Milliseconds from a payment's append to its decision's; unbiased, since both stamps are cut alike."""
    return round(float((decided.decided_ms - decided.appended_ms).mean()), 4) if len(decided) else None


def _kept(measured: Payments) -> float | None:
    """Payments per second on the input topic; None for too few of them."""
    if len(measured) < 2:
        return None
    span_ms = int(measured.appended_ms.max() - measured.appended_ms.min())
    return round((len(measured) - 1) / max(span_ms, 1) * 1000, 1)


def _longest_gap(payments: Payments) -> float:
    """The longest time between two payments' decisions, in seconds."""
    moments = np.sort(payments.decided_ms[payments.decided_ms > 0])
    return float(np.diff(moments).max(initial=0)) / 1000


def _late(payments: Payments) -> tuple[int, float]:
    """Decisions that were to come when the last payment was appended, and the seconds until the last of them."""
    end_ms = int(payments.appended_ms.max())
    late = payments.decided_ms[payments.decided_ms > end_ms]
    return len(late), float(late.max() - end_ms) / 1000 if len(late) else 0.0
