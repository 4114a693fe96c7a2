"""From rounds to results: medians of rounds, their spread, and the ratios between contenders."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import takewhile
from typing import Any

from fraud_filter.modes import MODES, OBJECTIVE_MS
from lab.bench.contenders import (
    CONTENDERS,
    FLINK,
    FLINK_EOS,
    FLINK_VELOCITY,
    MODEL,
    SINGLE,
    STREAMS,
    STREAMS_EOS,
    VELOCITY,
)
from lab.bench.percentiles import PERCENTILES
from lab.bench.result import RateResult, StartResult
from lab.harness.outcome import Audited

_LATENCIES = (*PERCENTILES, "max_ms")
#: The 99th percentile, in milliseconds, up to which a rate counts as one that a contender sustains.
P99_LIMIT_MS = 100.0
#: Pairs of contenders whose figures are set against each other, the first divided by the second. Besides, each with a
#: change is set against the one that it changes.
_PAIRS: tuple[tuple[str, str], ...] = (
    ("real-time", STREAMS),
    ("continuous", STREAMS),
    (SINGLE, STREAMS),
    ("real-time", FLINK),
    ("real-time", STREAMS_EOS),
    ("real-time", FLINK_EOS),
    (VELOCITY, FLINK_VELOCITY),
    (VELOCITY, "real-time"),
    (MODEL, "real-time"),
    ("micro-batch", "continuous"),
    ("micro-batch", "async-progress"),
)
_RATIO_OF: Mapping[str, Callable[[RateResult], float | None]] = {
    "p50": lambda one: one.append.get("p50_ms"),
    "p99": lambda one: one.append.get("p99_ms"),
    "cpu": lambda one: one.cpu_s_per_1000,
}


def names_of(starts: Iterable[StartResult]) -> list[str]:
    """The contenders of these starts, in the order of their first ones."""
    return list(dict.fromkeys(start.contender for start in starts))


def summarise_rounds(starts: Sequence[StartResult]) -> list[dict[str, Any]]:
    """For each contender and rate the medians of its rounds.

    Latencies are in milliseconds, from append to append; those from the due time on are named `due_…`. `spread_…` is
    the highest round less the lowest, as a share of the median; None with one round. `lost`, `duplicated`,
    `unexpected`, `flagged` and `rejected` are sums, `within_objective` is the share of the decisions within
    `OBJECTIVE_MS`; `features` and `detection` are those of the first round that has any. `keeps_up`: each round had at
    least 99 % of what was to be sent and was not behind at its end, and no start failed there or below.
    """
    results = []
    for name in names_of(starts):
        mine = [start for start in starts if start.contender == name]
        lowest_failed = min((start.failed_at for start in mine if start.failed_at is not None), default=math.inf)
        measured = [rate for start in mine for rate in start.rates]
        for rate in sorted({result.rate for result in measured}):
            result = _summarise(name, rate, [one for one in measured if one.rate == rate])
            results.append({**result, "keeps_up": result["keeps_up"] and rate < lowest_failed})
    return results


def _summarise(name: str, rate: float, rounds: Sequence[RateResult]) -> dict[str, Any]:
    return {
        "mode": name,
        "rate": rate,
        "rounds": len(rounds),
        **{figure: median_of_known(one.append.get(figure) for one in rounds) for figure in _LATENCIES},
        **{f"due_{figure}": median_of_known(one.due.get(figure) for one in rounds) for figure in _LATENCIES},
        "spread_p50": _spread(one.append.get("p50_ms") for one in rounds),
        "spread_p99": _spread(one.append.get("p99_ms") for one in rounds),
        "cpu_s_per_1000": median_of_known(one.cpu_s_per_1000 for one in rounds),
        "broker_cpu_s_per_1000": median_of_known(one.per_1000("broker") for one in rounds),
        "rss_mib": median_of_known(one.rss_mib for one in rounds),
        "stolen_share": median_of_known(one.stolen_share for one in rounds),
        "kept_rate": median_of_known(one.kept_rate for one in rounds),
        "decisions": sum(one.decisions for one in rounds),
        "within_objective": share_within(rounds, OBJECTIVE_MS),
        "lag": median_of_known(one.lag for one in rounds),
        "behind_s": median_of_known(one.behind_s for one in rounds),
        "gap_s": median_of_known(one.gap_s for one in rounds),
        "keeps_up": all(one.keeps_up for one in rounds),
        **asdict(Audited.total(one.audit for one in rounds)),
        "flagged": _sum_of_known(one.flagged for one in rounds),
        "rejected": _sum_of_known(one.rejected for one in rounds),
        "features": next((one.features for one in rounds if one.features), None),
        "detection": next((one.detection for one in rounds if one.detection), None),
    }


def summarise_starts(starts: Sequence[StartResult]) -> list[dict[str, Any]]:
    """For each contender the medians of what does not depend on the rate: time to the first decision.

    And how disturbed its starts were: the most of `stolen_share`.
    """
    return [
        {
            "mode": name,
            **_guarantees(name),
            "first_decision_s": median_of_known(start.first_decision_s for start in mine),
            "stolen_share": _of_known((start.stolen_share for start in mine), max),
            "errors": [f"round {start.round}: {start.error}" for start in mine if start.error],
        }
        for name in names_of(starts)
        if (mine := [start for start in starts if start.contender == name])
    ]


def _guarantees(name: str) -> dict[str, str | None]:
    """What a contender promises; the engine of what is none of the filter's modes is not known."""
    mode = next((mode for mode in MODES.values() if mode.name == name.partition(":")[0]), None)
    return {
        "engine_guarantee": mode.engine_guarantee if mode else None,
        "delivery_guarantee": CONTENDERS[name.partition(":")[0]].delivery,
    }


def find_limits(results: Sequence[Mapping[str, Any]], p99_limit_ms: float) -> list[dict[str, Any]]:
    """For each contender the highest rate that was tried and held: without falling behind, and with that p99 as well.

    The 99th percentile is from the due time on: a load that waits for its broker would look fast otherwise.
    `keeps_up_at` and `fast_at` are payments per second, None where no rate held. A rate counts when all below it do.
    """
    limits = []
    for name in dict.fromkeys(one["mode"] for one in results):
        mine = sorted((one for one in results if one["mode"] == name), key=lambda one: one["rate"])
        kept = list(takewhile(lambda one: one["keeps_up"], mine))
        fast = list(takewhile(lambda one: (one["due_p99_ms"] or math.inf) <= p99_limit_ms, kept))
        keeps_up_at, fast_at = (held[-1]["rate"] if held else None for held in (kept, fast))
        limits.append({"mode": name, "keeps_up_at": keeps_up_at, "fast_at": fast_at})
    return limits


def ratios(starts: Sequence[StartResult], rate: float) -> dict[str, dict[str, float | None]]:
    """Pairs of contenders at one rate: {"real-time/streams": {"p50": …, "p99": …, "cpu": …}}, medians of the rounds'.

    Within a round the two ran minutes apart at most, so that what slows the machine for longer falls out. Pairs of
    which one did not run are left out.
    """
    found = {(start.contender, start.round): one for start in starts for one in start.rates if one.rate == rate}
    result: dict[str, dict[str, float | None]] = {}
    changed = [(name, name.partition(":")[0]) for name in names_of(starts) if ":" in name]
    for upper, lower in (*changed, *_PAIRS):
        rounds = [number for name, number in found if name == upper and (lower, number) in found]
        if rounds:
            result[f"{upper}/{lower}"] = {
                short: median_of_known(
                    quotient(read(found[upper, number]), read(found[lower, number])) for number in rounds
                )
                for short, read in _RATIO_OF.items()
            }
    return result


def quotient(above: float | None, below: float | None) -> float | None:
    """How many times the second the first is; None: one of them is not known, or there is nothing to divide by."""
    return above / below if above is not None and below else None


def median_of_known(values: Iterable[float | None]) -> float | None:
    """The median of what was measured, to four significant digits; None when nothing was."""
    return _of_known(values, statistics.median)


def _spread(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None  # not the same as rounds that agree
    return _of_known(known, lambda several: (max(several) - min(several)) / (statistics.median(several) or 1))


def share_within(rounds: Iterable[RateResult], limit_ms: int) -> float | None:
    """The share (0 to 1) of the decisions that took `limit_ms` milliseconds at most; None when there are none."""
    counts = [(latency_ms, count) for one in rounds for latency_ms, count in one.append_ms.items()]
    total = sum(count for _, count in counts)
    return sum(count for latency_ms, count in counts if latency_ms <= limit_ms) / total if total else None


def _of_known(values: Iterable[float | None], function: Callable[[list[float]], float]) -> float | None:
    """The function of the values that are known, to four significant digits; None when there is none."""
    known = [value for value in values if value is not None]
    return float(f"{function(known):.4g}") if known else None


def _sum_of_known(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
