"""How much counters and offsets have grown, counted from the samples.

Not PromQL's `increase`: that extrapolates to the ends of the window, and answers 1013.4 where 1000 were counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

from fraud_filter.report.prometheus import Series


def growth(points: Iterable[tuple[float, float]], longest_gap_s: float = math.inf) -> float:
    """What a counter grew by from its first point to its last.

    A counter that falls has restarted at 0. What it had counted at its first point is left out, as it may be older
    than the window. Over a gap of more than `longest_gap_s` seconds nothing is counted.
    """
    near = (pair for pair in pairwise(points) if pair[1][0] - pair[0][0] <= longest_gap_s)
    return sum(now - before if now >= before else now for (_, before), (_, now) in near)


def total_growth(series: Iterable[Series], longest_gap_s: float, **labels: str) -> float | None:
    """The growth of all series with these labels together, gaps above `longest_gap_s` left out; None without one."""
    chosen = [one for one in series if one.points and labels.items() <= one.labels.items()]
    return sum(growth(one.points, longest_gap_s) for one in chosen) if chosen else None


def covered_s(series: Iterable[Series], longest_gap_s: float, **labels: str) -> float:
    """Seconds that there is data of at least one series with these labels; gaps above `longest_gap_s` don't count."""
    chosen = [one for one in series if labels.items() <= one.labels.items()]
    times = sorted({time for one in chosen for time, _ in one.points})
    return sum(gap for before, now in pairwise(times) if (gap := now - before) <= longest_gap_s)
