"""The plots of a bench, drawn by matplotlib from the results.

Latency is logarithmic. In the plot by percentile every further nine of the share takes the same width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from lab.bench.look import FAINT, Look, draw_objective, latency_axis, pushed_apart
from lab.bench.percentiles import PERCENTILES, grouped_percentile
from lab.bench.result import StartResult
from lab.bench.summary import median_of_known
from lab.bench.table import rounded

Results = Sequence[Mapping[str, Any]]
Looks = Mapping[str, Look]
Points = tuple[Sequence[float], Sequence[float]]

#: Points of a percentile curve.
_POINTS = 200
#: Characters of a name.
_LONGEST = 24
_PERCENTILES = (0, 50, 90, 99, 99.9, 99.99)


def percentiles(starts: Sequence[StartResult], results: Results, rate: float, looks: Looks) -> Figure | None:
    """Latency by percentile at one rate, at each percentile the rounds' median; None when nothing was measured."""
    curves = []
    for result in results:
        rounds = _rounds(starts, result["mode"], rate)
        if result["rate"] == rate and rounds:
            text = f"p50 {rounded(result['p50_ms'])} · p99 {rounded(result['p99_ms'])} ms"
            curves.append(_curve(result["mode"], rounds, text))
    return _percentile_figure(curves, looks)


def throughput(results: Results, looks: Looks) -> Figure | None:
    """Latency against the rate: the median as a line, the 99th percentile dashed; what fell behind is hollow."""
    figure = Figure(figsize=(9.2, 4.6), layout="constrained")
    axes = figure.add_subplot()
    latencies = []
    for name, mine in _by_contender(results).items():
        for quantile, line in (("p50_ms", "-"), ("p99_ms", ":")):
            points = [(one["rate"], drawn(one[quantile]), one["keeps_up"]) for one in mine if one[quantile] is not None]
            latencies += [latency for _, latency, _ in points]
            _line(axes, name, points, line, looks[name])
    if not latencies:
        return None
    latency_axis(axes, latencies)
    _rate_axis(axes, sorted({one["rate"] for one in results}))
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, title="line p50, dots p99")
    return figure


def _short(name: str) -> str:
    """The name as a plot has room for it; the table has all of it, beside its colour."""
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _rounds(starts: Sequence[StartResult], name: str, rate: float) -> list[Mapping[int, int]]:
    """Latencies by whole milliseconds of each round in which there were any."""
    mine = [one for start in starts if start.contender == name for one in start.rates if one.rate == rate]
    return [one.append_ms for one in mine if one.append_ms]


def _curve(name: str, rounds: Sequence[Mapping[int, int]], text: str) -> _Curve:
    fewest = min(sum(counts.values()) for counts in rounds)
    end = position(1 - 0.5 / fewest)
    places = np.linspace(0, end, _POINTS).tolist()
    shares = [share / 100 for share in PERCENTILES.values() if position(share / 100) <= end]
    return _Curve(
        name,
        (places, [_at(rounds, 1 - 10**-place) for place in places]),
        ([position(share) for share in shares], [_at(rounds, share) for share in shares]),
        text,
    )


def _at(rounds: Sequence[Mapping[int, int]], share: float) -> float:
    return drawn(median_of_known(grouped_percentile(counts, share * 100) for counts in rounds) or 0)


def _by_contender(results: Results) -> dict[str, list[Mapping[str, Any]]]:
    names = dict.fromkeys(one["mode"] for one in results)
    return {name: [one for one in results if one["mode"] == name] for name in names}


def _line(axes: Axes, name: str, points: Sequence[tuple[float, float, bool]], line: str, look: Look) -> None:
    colour = look.colour
    label = _short(name) if line == "-" else None
    axes.plot([x for x, _, _ in points], [y for _, y, _ in points], line, color=colour, linewidth=2, label=label)
    for x, y, keeps_up in points:
        axes.plot(x, y, look.marker, color=colour, markersize=6, markerfacecolor=colour if keeps_up else "white")


def _rate_axis(axes: Axes, rates: Sequence[float]) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(rates))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda rate, _: f"{rate:,g}/s"))
    axes.set_xlim(rates[0] / 1.3, rates[-1] * 1.3)
    axes.set_xlabel("payments per second")


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


def drawn(latency_ms: float) -> float:
    """A logarithmic axis has no zero; what took less than half a millisecond is drawn at a half."""
    return max(latency_ms, 0.5)


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
    named = [percentile for percentile in _PERCENTILES if position(percentile / 100) <= right]
    axes.set_xlim(0, right)
    axes.xaxis.set_major_locator(FixedLocator([position(percentile / 100) for percentile in named]))
    axes.set_xticklabels([f"{percentile:g} %" for percentile in named])
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
