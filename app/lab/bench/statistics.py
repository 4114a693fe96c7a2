"""Everything that is computed from latencies: percentiles of a round, intervals over rounds, and words for them.

The generator knows the microsecond at which a payment was due; the broker cuts the stamp of its decision down to
milliseconds. So each latency is known to lie in an interval one millisecond long. The percentiles are those of the
distribution under which all these intervals are most likely: the maximum-likelihood estimate of interval-censored data
(Turnbull 1976), by expectation maximisation on steps of 20 µs.

Decisions of one start are no independent sample: what slows the machine slows them all. So the sample are the rounds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: The percentiles of every table, by the name of their figure.
PERCENTILES: Mapping[str, float] = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99}
#: Decisions from which on a 99.9th percentile is told: 30 of them take longer.
ENOUGH_FOR_P999 = 30_000
#: Latencies are counted by steps of so many microseconds; a millisecond has so many steps.
STEP_US = 20
_WIDTH = 1000 // STEP_US
#: Fewer leave a step too flat, more follow the accidents of a sample: simulated, see the tests.
_REPEATS = 100
#: How many times the standard error a 95 % interval reaches to either side, for 3 rounds, 4, … 22 (Student's t). With
#: two it would reach 13 times as far: those have no interval.
_T = (4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201,
      2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080)  # fmt: skip
FEWEST_ROUNDS = 3
#: Two contenders are on a par if the ratio of their figures is certain to be in here.
PAR = (0.8, 1.25)

#: What is known of latencies: how many begin in each step of `STEP_US`, by the step's number; each ends within 1 ms.
Counts = Mapping[int, int]


def count_latencies(due_us: Any, decided_ms: Any) -> dict[int, int]:
    """How many latencies begin in each step.

    Args:
        due_us: when each payment was due, an array of microseconds since 1970.
        decided_ms: the stamps of their decisions, cut down to milliseconds since 1970.
    """
    steps = np.rint((decided_ms * 1000 - due_us) / STEP_US).astype(np.int64)
    values, counts = np.unique(np.maximum(steps, 1 - _WIDTH), return_counts=True)  # no latency is below zero
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def percentiles(counts: Counts, shares: Sequence[float]) -> list[float]:
    """The latencies in milliseconds that such shares (0 to 1) of the decisions do not exceed.

    Args:
        counts: of at least one latency.
    """
    steps = np.array(sorted(counts))
    amounts = np.array([counts[step] for step in steps.tolist()], dtype=float)
    # The steps in which a latency may lie: no other can have a share of them.
    cells = np.unique(np.maximum(steps[:, None] + np.arange(_WIDTH), 0))
    first, end = np.searchsorted(cells, steps), np.searchsorted(cells, steps + _WIDTH)
    shared = np.full(len(cells), 1 / len(cells))
    for _ in range(_REPEATS):
        reached = np.concatenate(([0.0], np.cumsum(shared)))
        weights = amounts / (reached[end] - reached[first])
        begun = np.bincount(first, weights, len(cells) + 1) - np.bincount(end, weights, len(cells) + 1)
        shared *= np.maximum(np.cumsum(begun)[:-1], 0)
        shared /= shared.sum()
    reached = np.concatenate(([0.0], np.cumsum(shared)))
    edges_ms = np.stack((cells, cells + 1), axis=1).ravel() * STEP_US / 1000
    found = np.interp(shares, np.stack((reached[:-1], reached[1:]), axis=1).ravel(), edges_ms)
    return [round(float(latency_ms), 4) for latency_ms in found]


def summarise(counts: Counts) -> dict[str, float | None]:
    """Milliseconds: `mean_ms`, the percentiles, `max_ms`, which none exceeds; each None where nothing was measured.

    The mean is unbiased, because the due times are spread evenly over the millisecond.
    """
    names = ("mean_ms", *PERCENTILES, "p999_ms", "max_ms")
    if not counts:
        return dict.fromkeys(names)
    total = sum(counts.values())
    middle = sum(step * count for step, count in counts.items()) / total + _WIDTH / 2
    found = percentiles(counts, [*PERCENTILES.values(), 0.999])
    rare = found[-1] if total >= ENOUGH_FOR_P999 else None
    longest_ms = (max(counts) + _WIDTH) * STEP_US / 1000
    return dict(zip(names, (round(middle * STEP_US / 1000, 4), *found[:-1], rare, longest_ms), strict=True))


def together(several: Iterable[Counts]) -> Counts:
    """The latencies of several rounds as one."""
    total: Counter[int] = Counter()
    for counts in several:
        total.update(counts)
    return total


@dataclass(frozen=True)
class Estimate:
    """A figure over rounds, and the ends of its 95 % interval; they are None with less than three rounds."""

    figure: float
    low: float | None = None
    high: float | None = None


def over_rounds(values: Iterable[float | None]) -> Estimate | None:
    """The geometric mean of what rounds gave, so that a ratio of two such figures is the mean of the rounds' ratios.

    The interval is Student's, of the logarithms. (The percentiles of a bootstrap over 3, 5, 10 rounds hold the true
    value in 75, 86, 90 of 100 cases instead of 95.) None where no value above 0 is known.
    """
    logs = np.log([value for value in values if value])
    if not len(logs):
        return None
    middle = float(logs.mean())
    if len(logs) < FEWEST_ROUNDS:
        return Estimate(_digits(math.exp(middle)))
    reach = _T[min(len(logs) - FEWEST_ROUNDS, len(_T) - 1)] * float(logs.std(ddof=1)) / math.sqrt(len(logs))
    return Estimate(*(_digits(math.exp(middle + away)) for away in (0, -reach, reach)))


def _digits(value: float) -> float:
    return float(f"{value:.4g}")


def verdict(ratio: Estimate, below: str = "faster", above: str = "slower") -> str:
    """What the interval of a ratio shows of the first of the two; no more may be said."""
    if ratio.low is None or ratio.high is None:
        return "not told apart"
    if PAR[0] <= ratio.low and ratio.high <= PAR[1]:
        return "on a par"
    if ratio.high < 1:
        return below
    return above if ratio.low > 1 else "not told apart"
