"""The plot of latency over the measured seconds: a panel each, the median as a line, a band up to the slowest."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from fraud_filter.metrics.latency import Second
from fraud_filter.modes import OBJECTIVE_MS
from fraud_filter.pages.palette import COLOURS, MARKERS
from fraud_filter.pages.percentile_plot import drawn
from fraud_filter.pages.plotting import OBJECTIVE_INK, latency_axis


def seconds_figure(panels: Mapping[str, Sequence[Second]]) -> Figure | None:
    """A panel for each name that has seconds with latencies; None when none has."""
    shown = {name: found for name, seconds in panels.items() if (found := _with_latency(seconds))}
    if not shown:
        return None
    columns = min(2, len(shown))
    figure = Figure(figsize=(9.2, 0.7 + 1.75 * math.ceil(len(shown) / columns)), layout="constrained")
    grid = figure.subplots(math.ceil(len(shown) / columns), columns, sharex=True, sharey=True, squeeze=False)
    latencies = [latency for points in shown.values() for _, p50_ms, max_ms in points for latency in (p50_ms, max_ms)]
    last = max(len(seconds) for seconds in panels.values())
    for axes, name in itertools.zip_longest(grid.flat, shown):
        if name is None:
            axes.set_visible(False)
            continue
        _draw(axes, name, shown[name])
        latency_axis(axes, latencies)
        axes.yaxis.set_major_locator(FixedLocator([1, 10, 100, 1000, 10_000, 100_000]))
        axes.set_xlim(1, max(2, last))
    for axes in grid[-1]:
        axes.set_xlabel("measured second")
    return figure


def _with_latency(seconds: Sequence[Second]) -> list[tuple[int, float, float]]:
    return [
        (second.second, drawn(second.p50_ms), drawn(second.max_ms))
        for second in seconds
        if second.p50_ms is not None and second.max_ms is not None
    ]


def _draw(axes: Axes, name: str, points: Sequence[tuple[int, float, float]]) -> None:
    colour, marker = COLOURS[name], MARKERS[name]
    x, medians, slowest = zip(*points, strict=True)
    axes.fill_between(x, medians, slowest, color=colour, alpha=0.22, linewidth=0)
    axes.plot(x, medians, color=colour, linewidth=1.8, marker=marker, markersize=3.5, clip_on=False)
    axes.axhline(OBJECTIVE_MS, color=OBJECTIVE_INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_title(name, loc="left", color=colour, fontweight="bold", fontsize=11)
