"""Whether a figure of a process grows. Pure.

The life of a process is cut into windows, of each the median is taken (of a heap the least: what a collection
leaves). The slope is that of Theil and Sen, the median of the slopes between all pairs of windows, which a few windows
out of line do not move (Sen 1968, J. Amer. Statist. Assoc. 63). A figure grows when the slope adds more than a
tolerance over the time that was seen, and when nearly all pairs of windows rise: what a filling cache adds once is no
growth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import median

from lab.soak.samples import Life, Sample

#: Not looked at: caches fill, code is compiled, heaps take their size.
WARM_UP_S = 120.0
#: A window has samples enough for a median; fewer windows say nothing.
_WINDOW_S = 60.0
_LEAST_WINDOWS, _MOST_WINDOWS = 5, 20
_RISING = 0.8


@dataclass(frozen=True)
class Figure:
    """One that is looked at. It may add `share` of its first value and `extra` (its own unit) over the time seen."""

    name: str
    unit: str
    read: Callable[[Sample], float | None]
    share: float
    extra: float
    floor: bool = False


_MIB = 1024 * 1024
FIGURES = (
    Figure("memory", "bytes", lambda sample: sample.memory, 0.15, 48 * _MIB),
    Figure("heap after collections", "bytes", lambda sample: sample.heap, 0.15, 24 * _MIB, floor=True),
    Figure("threads", "threads", lambda sample: sample.threads, 0.1, 10),
    Figure("files", "open files", lambda sample: sample.files, 0.1, 20),
)


@dataclass(frozen=True)
class Trend:
    """A figure of one process: its first and last window's value, what the slope adds over `seconds`, the verdict."""

    role: str
    figure: str
    unit: str
    seconds: float
    windows: int
    first: float
    last: float
    added: float
    allowed: float
    rising: float
    grows: bool


def find_trends(lives: Mapping[Life, Sequence[Sample]], figures: Iterable[Figure] = FIGURES) -> list[Trend]:
    """Trends of all processes that lived long enough to have one."""
    trends = []
    for life, samples in lives.items():
        for figure in figures:
            points = [(sample.at_s, value) for sample in samples if (value := figure.read(sample)) is not None]
            trend = _trend(life.role, figure, points)
            if trend:
                trends.append(trend)
    return trends


def _trend(role: str, figure: Figure, points: Sequence[tuple[float, float]]) -> Trend | None:
    windows = cut(points, min if figure.floor else median)
    if len(windows) < _LEAST_WINDOWS:
        return None
    pairs = list(combinations(windows, 2))
    slope = median((later[1] - earlier[1]) / (later[0] - earlier[0]) for earlier, later in pairs)
    rising = sum(later[1] > earlier[1] for earlier, later in pairs) / len(pairs)
    seconds = windows[-1][0] - windows[0][0]
    first, last = windows[0][1], windows[-1][1]
    added, allowed = slope * seconds, figure.share * first + figure.extra
    return Trend(
        role=role,
        figure=figure.name,
        unit=figure.unit,
        seconds=round(seconds),
        windows=len(windows),
        first=first,
        last=last,
        added=round(added, 1),
        allowed=round(allowed, 1),
        rising=round(rising, 2),
        grows=added > allowed and rising >= _RISING,
    )


def cut(points: Sequence[tuple[float, float]], choose: Callable[[list[float]], float]) -> list[tuple[float, float]]:
    """Windows of equal length after the warm-up, as (middle, chosen value); empty ones are left out."""
    if not points:
        return []
    start, end = points[0][0] + WARM_UP_S, points[-1][0]
    count = min(_MOST_WINDOWS, int((end - start) // _WINDOW_S))
    if count < 1:
        return []
    edges = [start + (end - start) * number / count for number in range(count + 1)]
    windows = []
    for low, high in pairwise(edges):
        values = [value for at_s, value in points if low <= at_s <= high]
        if values:
            windows.append(((low + high) / 2, choose(values)))
    return windows
