"""Turns the payments of one rate into its figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.bench.readback import Payments
from lab.bench.result import RateResult
from lab.bench.statistics import count_latencies, summarise
from lab.harness.sampler import Sampler

#: Who waits for the end of a batch was due in so many seconds before or after it.
_AROUND_S = 2.0


def evaluate(
    rate: float, payments: Payments, sampler: Sampler, *, settle_s: float, seconds: float, ends_s: Sequence[float] = ()
) -> RateResult:
    """The figures of one rate.

    Args:
        settle_s: left out at the beginning.
        seconds: measured after that.
        payments: all that were sent at this rate, those of the settling included.
        ends_s: when the contender's batches were committed, seconds since 1970.
        sampler: which has watched the programs meanwhile, the contender under that name.
    """
    began_us = int(payments.due_us.min()) + round(settle_s * 1e6)
    ended_us = began_us + round(seconds * 1e6)
    measured = payments.select((payments.due_us >= began_us) & (payments.due_us < ended_us))
    decided = measured.select(measured.decided_ms > 0)
    counts = count_latencies(decided.due_us, decided.decided_ms)
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
        decided_share=_decided_share(decided),
        lag=int((payments.decided_ms > payments.appended_ms.max()).sum()),
        batch_ends_ms=_batch_ends(decided, ends_s),
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


def _waits_ms(decided: Payments) -> Any:
    return decided.decided_ms - decided.due_us / 1000


def _decided_share(decided: Payments) -> float | None:
    """How many payments were decided in a second, of those that were due in it.

    Waits that grow by 0.1 s each second are those of a contender that decides 10 of 11. How they grow the medians of
    the first and of the last third tell, which a pause leaves as they are. None for too few payments.
    """
    third = len(decided) // 3
    if not third:
        return None
    order = np.argsort(decided.due_us)
    first, last = (decided.select(part) for part in (order[:third], order[-third:]))
    growth_ms = float(np.median(_waits_ms(last)) - np.median(_waits_ms(first)))
    return round(1 / (1 + max(growth_ms, 0) * 1000 / float(np.median(last.due_us) - np.median(first.due_us))), 4)


def _batch_ends(decided: Payments, ends_s: Sequence[float]) -> list[float]:
    """The longest wait around each end of a batch within the measured seconds; none where batches are short."""
    if not len(decided):
        return []
    due_s, waits_ms = decided.due_us / 1e6, _waits_ms(decided)
    seen = [end for end in ends_s if due_s.min() + _AROUND_S < end < due_s.max() - _AROUND_S]
    if len(seen) * 4 * _AROUND_S > due_s.max() - due_s.min():
        return []
    around = (waits_ms[abs(due_s - end) < _AROUND_S] for end in seen)
    return [round(float(waits.max()), 1) for waits in around if len(waits)]
