"""From rounds to results: figures over the rounds with their intervals, and contenders set against each other."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from lab.bench.contenders import CONTENDERS
from lab.bench.result import RateResult, StartResult
from lab.bench.statistics import Estimate, over_rounds, summarise, together, verdict
from lab.harness.outcome import Audited

#: Pairs of contenders that are set against each other, the figures of the first divided by those of the second.
#: Besides, each with a change is set against the one that it changes.
PAIRS: tuple[tuple[str, str], ...] = (
    *(("real-time", other) for other in ("micro-batch", "flink", "flink-json", "flink-eos")),
    *(("real-time", other) for other in ("streams", "streams-eos", "spark", "copy")),
    ("velocity", "flink-velocity"),
    ("copy", "flink-copy"),
)
#: What has an interval over the rounds, by its name in a result.
_FIGURES: Mapping[str, Callable[[RateResult], float | None]] = {
    "due_mean_ms": lambda one: one.due.get("mean_ms"),
    "due_p50_ms": lambda one: one.due.get("p50_ms"),
    "due_p90_ms": lambda one: one.due.get("p90_ms"),
    "due_p99_ms": lambda one: one.due.get("p99_ms"),
    "append_mean_ms": lambda one: one.append_mean_ms,
    "cpu_s_per_1000": lambda one: one.per_1000("contender"),
    "broker_cpu_s_per_1000": lambda one: one.per_1000("broker"),
}
#: What two contenders are compared by, with the words for less and more of it.
_COMPARED = {
    "due_p50_ms": ("faster", "slower"),
    "due_p99_ms": ("faster", "slower"),
    "cpu_s_per_1000": ("less", "more"),
}


def names_of(starts: Iterable[StartResult]) -> list[str]:
    """The contenders of these starts in the order of `CONTENDERS`, each followed by those that change it."""
    places = {name: place for place, name in enumerate(CONTENDERS)}
    return sorted({start.contender for start in starts}, key=lambda name: (places[name.partition(":")[0]], name))


def summarise_rounds(starts: Sequence[StartResult]) -> list[dict[str, Any]]:
    """For each contender and rate what its rounds gave, those that are set aside left out.

    Latencies are in milliseconds, `due_…` from the due time on, `append_mean_ms` from the payment's append. They and
    processor time are geometric means of the rounds; `intervals` has the 95 % interval of each, None below 3 rounds.
    `due_p999_ms` is of all rounds together, and None below 30,000 decisions; `due_max_ms` is the highest of all.
    `first_decision_s` is the time from the start to the first decision, at any rate. `lost`, `duplicated`,
    `unexpected`, `flagged` and `rejected` are sums, `features` and `detection` are those of the first round that has
    any, `decided_share` is the least of the rounds, `batch_ends_ms` has those of all, all others are medians.
    `keeps_up`: each round had at least 99 % of what was to be sent, decided at least 99 % of it in the same time, 99 of
    100 within a second, and no start failed there or below.
    """
    results = []
    for name in names_of(starts):
        mine = [start for start in starts if start.contender == name and not start.is_set_aside]
        first_decision_s = median_of_known(start.first_decision_s for start in mine)
        lowest_failed = min((start.failed_at for start in mine if start.failed_at is not None), default=math.inf)
        measured = [rate for start in mine for rate in start.rates]
        for rate in sorted({result.rate for result in measured}):
            result = _summarise(name, rate, [one for one in measured if one.rate == rate])
            keeps_up = result["keeps_up"] and rate < lowest_failed
            results.append({**result, "first_decision_s": first_decision_s, "keeps_up": keeps_up})
    return results


def _summarise(name: str, rate: float, rounds: Sequence[RateResult]) -> dict[str, Any]:
    found = {figure: over_rounds(map(read, rounds)) for figure, read in _FIGURES.items()}
    whole = summarise(together(one.due_20us for one in rounds))
    return {
        "mode": name,
        "rate": rate,
        "rounds": len(rounds),
        **{figure: one.figure if one else None for figure, one in found.items()},
        "due_p999_ms": whole["p999_ms"],
        "due_max_ms": whole["max_ms"],
        "intervals": {figure: _interval(one) for figure, one in found.items()},
        "rss_mib": median_of_known(one.rss_mib for one in rounds),
        "stolen_share": median_of_known(one.stolen_share for one in rounds),
        "kept_rate": median_of_known(one.kept_rate for one in rounds),
        "decisions": sum(one.decisions for one in rounds),
        "lag": median_of_known(one.lag for one in rounds),
        "decided_share": min((one.decided_share for one in rounds if one.decided_share is not None), default=None),
        "batch_ends_ms": sorted(wait for one in rounds for wait in one.batch_ends_ms),
        "gap_s": median_of_known(one.gap_s for one in rounds),
        "keeps_up": all(one.keeps_up for one in rounds),
        **asdict(Audited.total(one.audit for one in rounds)),
        "flagged": _sum_of_known(one.flagged for one in rounds),
        "rejected": _sum_of_known(one.rejected for one in rounds),
        "features": next((one.features for one in rounds if one.features), None),
        "detection": next((one.detection for one in rounds if one.detection), None),
    }


def compare(starts: Sequence[StartResult]) -> list[dict[str, Any]]:
    """Pairs of contenders, `first` and `second`, at each rate that both had.

    For latency and processor time: the `ratio` of the first to the second, its 95 % interval from `low` to `high`, and
    the `verdict`. Within a round the two ran minutes apart at most, so that what slows the machine for longer falls
    out of the round's ratio.
    """
    found = {(s.contender, s.round, one.rate): one for s in starts if not s.is_set_aside for one in s.rates}
    changed = [(name, name.partition(":")[0]) for name in names_of(starts) if ":" in name]
    compared = []
    for first, second in (*changed, *PAIRS):
        both = [(number, rate) for name, number, rate in found if name == first and (second, number, rate) in found]
        for rate in sorted({rate for _, rate in both}):
            rounds = [(found[first, number, rate], found[second, number, rate]) for number, at in both if at == rate]
            figures = {name: _ratio(name, rounds) for name in _COMPARED}
            compared.append({"first": first, "second": second, "rate": rate, "rounds": len(rounds), **figures})
    return compared


def _ratio(name: str, rounds: Sequence[tuple[RateResult, RateResult]]) -> dict[str, Any] | None:
    read = _FIGURES[name]
    ratio = over_rounds(_quotient(read(one), read(other)) for one, other in rounds)
    if ratio is None:
        return None
    return {"ratio": ratio.figure, "low": ratio.low, "high": ratio.high, "verdict": verdict(ratio, *_COMPARED[name])}


def _quotient(above: float | None, below: float | None) -> float | None:
    """How many times the second the first is; None: one of them is not known, or there is nothing to divide by."""
    return above / below if above is not None and below else None


def _interval(one: Estimate | None) -> list[float] | None:
    return None if one is None or one.low is None or one.high is None else [one.low, one.high]


def median_of_known(values: Iterable[float | None]) -> float | None:
    """The median of what was measured, to four significant digits; None when nothing was."""
    known = [value for value in values if value is not None]
    return float(f"{statistics.median(known):.4g}") if known else None


def _sum_of_known(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
