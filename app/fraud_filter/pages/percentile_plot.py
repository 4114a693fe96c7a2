"""The plot of latency by percentile: every further nine of the share takes the same width, latency is logarithmic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from fraud_filter.pages.palette import COLOURS, MARKERS
from fraud_filter.pages.plotting import FAINT, draw_objective, latency_axis, pushed_apart

_PERCENTILES = (0, 50, 90, 99, 99.9, 99.99)

Points = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True)
class Curve:
    """One curve: `line` and its marked `points` as positions (see `position`) and milliseconds.

    `name` decides the colour; `text` stands under it at the curve's end.
    """

    name: str
    line: Points
    points: Points
    text: str


def position(share: float) -> float:
    """Where a percentile (as a share, 0 to below 1) stands on the axis: 0.9 at 1, 0.99 at 2, 0.999 at 3."""
    return -math.log10(1 - share)


def drawn(latency_ms: float) -> float:
    """A logarithmic axis has no zero; what took less than half a millisecond is drawn at a half."""
    return max(latency_ms, 0.5)


def percentile_figure(curves: Sequence[Curve]) -> Figure | None:
    """All curves in one plot; None when there are none."""
    if not curves:
        return None
    figure = Figure(figsize=(9.2, 4.9), layout="constrained")
    axes = figure.add_subplot()
    for curve in curves:
        colour, marker = COLOURS[curve.name], MARKERS[curve.name]
        axes.plot(*curve.line, color=colour, linewidth=2.2, solid_capstyle="round", zorder=3)
        axes.plot(
            *curve.points,
            color=colour,
            linestyle="none",
            marker=marker,
            markersize=6.5,
            markeredgecolor="white",
            zorder=4,
        )
    _percentile_axis(axes, max(curve.line[0][-1] for curve in curves))
    latency_axis(axes, [latency for curve in curves for latency in (curve.line[1][0], curve.line[1][-1])])
    draw_objective(axes)
    _label_curves(axes, curves)
    return figure


def _percentile_axis(axes: Axes, right: float) -> None:
    named = [percentile for percentile in _PERCENTILES if position(percentile / 100) <= right]
    axes.set_xlim(0, right)
    axes.xaxis.set_major_locator(FixedLocator([position(percentile / 100) for percentile in named]))
    axes.set_xticklabels([f"{percentile:g} %" for percentile in named])
    axes.set_xlabel("share of the decisions that took at most this long")
    axes.grid(axis="x", color=FAINT, linewidth=0.8)


def _label_curves(axes: Axes, curves: Sequence[Curve]) -> None:
    """Names each curve at its end, beside the plot, pushed apart where two of them end close together."""
    low, high = (math.log10(limit) for limit in axes.get_ylim())
    ordered = sorted(curves, key=lambda curve: curve.line[1][-1])
    heights = pushed_apart([math.log10(curve.line[1][-1]) for curve in ordered], (high - low) * 0.105, high)
    for curve, height in zip(ordered, heights, strict=True):
        place = (1.02, (height - low) / (high - low))
        for text, style in (
            (f"{curve.name}\n", {"color": COLOURS[curve.name], "fontweight": "bold"}),
            (f"\n{curve.text}", {"fontsize": 9.5}),
        ):
            axes.text(*place, text, transform=axes.transAxes, va="center", **style)
