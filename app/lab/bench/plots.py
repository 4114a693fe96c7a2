"""Latency by percentile as a plot, from the due time on; every further nine of the share takes the same width."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from lab.bench.look import FAINT, Look, draw_objective, latency_axis, pushed_apart
from lab.bench.result import StartResult
from lab.bench.statistics import ENOUGH_FOR_P999, PERCENTILES, Counts, percentiles
from lab.bench.table import rounded

Results = Sequence[Mapping[str, Any]]
Looks = Mapping[str, Look]
Points = tuple[Sequence[float], Sequence[float]]

#: Points of a percentile curve.
_POINTS = 200
#: Characters of a name.
_LONGEST = 24
#: Where a curve begins: what a hundredth of the decisions did not exceed.
_FIRST = 0.01
_SHARES = (0, 0.5, 0.9, 0.99, 0.999)
#: A logarithmic axis has no zero.
_LEAST_MS = 0.05


def plot_percentiles(starts: Sequence[StartResult], results: Results, rate: float, looks: Looks) -> Figure | None:
    """The curve of each contender at one rate, the mean of its rounds; None when nothing was measured.

    It ends at the 99th percentile, and at the 99.9th where there are enough decisions for that.
    """
    curves = []
    for result in results:
        rounds = _rounds(starts, result["mode"], rate)
        if result["rate"] == rate and rounds:
            text = f"p50 {rounded(result['due_p50_ms'])} · p99 {rounded(result['due_p99_ms'])} ms"
            curves.append(_curve(result["mode"], rounds, text))
    return _percentile_figure(curves, looks)


def _short(name: str) -> str:
    """The name as a plot has room for it; the table has all of it, beside its colour."""
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _rounds(starts: Sequence[StartResult], name: str, rate: float) -> list[Counts]:
    """The latencies of each round that counts and has any."""
    mine = [start for start in starts if start.contender == name and not start.is_set_aside]
    return [one.due_20us for start in mine for one in start.rates if one.rate == rate and one.due_20us]


def _curve(name: str, rounds: Sequence[Counts], text: str) -> _Curve:
    decisions = sum(sum(counts.values()) for counts in rounds)
    end = 0.999 if decisions >= ENOUGH_FOR_P999 else 0.99
    places = np.linspace(position(_FIRST), position(end), _POINTS).tolist()
    shares = [share for share in (*PERCENTILES.values(), end) if share <= end]
    return _Curve(
        name,
        (places, _mean(rounds, [1 - 10**-place for place in places])),
        ([position(share) for share in shares], _mean(rounds, shares)),
        text,
    )


def _mean(rounds: Sequence[Counts], shares: Sequence[float]) -> list[float]:
    """The geometric mean of the rounds' percentiles, as in the results."""
    several = np.maximum([percentiles(counts, shares) for counts in rounds], _LEAST_MS)
    latencies: list[float] = np.exp(np.log(several).mean(axis=0)).tolist()
    return latencies


@dataclass(frozen=True)
class _Curve:
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


def _percentile_figure(curves: Sequence[_Curve], looks: Looks) -> Figure | None:
    if not curves:
        return None
    figure = Figure(figsize=(9.2, 4.9), layout="constrained")
    axes = figure.add_subplot()
    for curve in curves:
        colour, marker = looks[curve.name].colour, looks[curve.name].marker
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
    _label_curves(axes, curves, looks)
    return figure


def _percentile_axis(axes: Axes, right: float) -> None:
    named = [share for share in _SHARES if position(share) <= right + 1e-9]
    axes.set_xlim(0, right)
    axes.xaxis.set_major_locator(FixedLocator([position(share) for share in named]))
    axes.set_xticklabels([f"{share * 100:g} %" for share in named])
    axes.set_xlabel("share of the decisions that took at most this long")
    axes.grid(axis="x", color=FAINT, linewidth=0.8)


def _label_curves(axes: Axes, curves: Sequence[_Curve], looks: Looks) -> None:
    """Names each curve at its end, beside the plot, pushed apart where two of them end close together."""
    low, high = (math.log10(limit) for limit in axes.get_ylim())
    ordered = sorted(curves, key=lambda curve: curve.line[1][-1])
    heights = pushed_apart([math.log10(curve.line[1][-1]) for curve in ordered], (high - low) * 0.105, high)
    for curve, height in zip(ordered, heights, strict=True):
        place = (1.02, (height - low) / (high - low))
        for text, style in (
            (f"{_short(curve.name)}\n", {"color": looks[curve.name].colour, "fontweight": "bold"}),
            (f"\n{curve.text}", {"fontsize": 9.5}),
        ):
            axes.text(*place, text, transform=axes.transAxes, va="center", **style)
