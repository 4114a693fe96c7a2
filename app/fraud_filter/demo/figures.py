"""The plots of a demo, drawn by matplotlib: latency by percentile, and latency over time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from fraud_filter.demo.result import Distribution, ModeResult, quantile
from fraud_filter.latency import OBJECTIVE_MS
from fraud_filter.pages.numbers import format_number
from fraud_filter.pages.palette import COLOURS, MARKERS
from fraud_filter.pages.plotting import FAINT, OBJECTIVE_INK, RC, latency_axis, svg

_PERCENTILES = (0, 50, 90, 99, 99.9, 99.99)


def percentile_svg(results: Sequence[ModeResult]) -> str:
    """Latency by percentile, all modes in one plot, as `<svg>` element; empty when nothing was measured."""
    with mpl.rc_context(RC):
        figure = _percentile_figure(results)
        return svg(figure) if figure else ""


def timeline_svg(results: Sequence[ModeResult]) -> str:
    """Latency over the measured seconds, a panel a mode, as `<svg>` element; empty when there are none."""
    with mpl.rc_context(RC):
        figure = _timeline_figure(results)
        return svg(figure) if figure else ""


def save_png(results: Sequence[ModeResult], path: Path) -> bool:
    """Writes the percentile plot to `path`, 200 dots per inch; False when nothing was measured."""
    with mpl.rc_context(RC):
        figure = _percentile_figure(results)
        if figure:
            figure.savefig(path, format="png", dpi=200, facecolor="white")
        return figure is not None


def _percentile_figure(results: Sequence[ModeResult]) -> Figure | None:
    shown = [result for result in results if result.distribution]
    if not shown:
        return None
    figure = Figure(figsize=(9.2, 4.9), layout="constrained")
    axes = figure.add_subplot()
    ends: list[tuple[float, float, ModeResult]] = []
    for result in shown:
        x, y = _curve(result.distribution)
        colour, marker = COLOURS[result.mode], MARKERS[result.mode]
        axes.plot(x, y, color=colour, linewidth=2.2, solid_capstyle="round", zorder=3)
        axes.plot(
            *_named_points(result.distribution),
            color=colour,
            linestyle="none",
            marker=marker,
            markersize=6.5,
            markeredgecolor="white",
            zorder=4,
        )
        ends.append((x[-1], y[-1], result))
    right = max(x for x, _, _ in ends)
    _percentile_axis(axes, right)
    latency_axis(axes, [latency for _, latency, _ in ends] + [_floor(min(r.distribution)) for r in shown])
    axes.axhline(OBJECTIVE_MS, color=OBJECTIVE_INK, linewidth=1.2, linestyle=(0, (4, 3)), zorder=2)
    axes.annotate(f"objective {OBJECTIVE_MS} ms", (0, OBJECTIVE_MS), (4, 4), textcoords="offset points",
                  color=OBJECTIVE_INK, fontsize=10)  # fmt: skip
    _label_curves(axes, ends)
    return figure


def _floor(latency_ms: float) -> float:
    """A logarithmic axis has no zero; what took less than a whole millisecond is drawn at a half."""
    return max(latency_ms, 0.5)


def _position(share: float) -> float:
    """Where a percentile (as a share) stands: every further nine takes the same width."""
    return -math.log10(1 - share)


def _curve(distribution: Distribution) -> tuple[list[float], list[float]]:
    """The quantile function as steps, up to the slowest record, whose share is that of its middle."""
    total = sum(distribution.values())
    xs, ys, seen = [0.0], [_floor(min(distribution))], 0
    for latency_ms in sorted(distribution):
        xs.append(xs[-1])
        ys.append(_floor(latency_ms))
        seen += distribution[latency_ms]
        xs.append(_position(min(seen, total - 0.5) / total))
        ys.append(_floor(latency_ms))
    return xs, ys


def _named_points(distribution: Distribution) -> tuple[list[float], list[float]]:
    total = sum(distribution.values())
    shares = [share for share in (0.5, 0.9, 0.99, 0.999) if total * (1 - share) >= 1]
    return [_position(share) for share in shares], [_floor(quantile(distribution, share) or 0) for share in shares]


def _percentile_axis(axes: Axes, right: float) -> None:
    named = [percentile for percentile in _PERCENTILES if _position(percentile / 100) <= right]
    axes.set_xlim(0, right)
    axes.xaxis.set_major_locator(FixedLocator([_position(percentile / 100) for percentile in named]))
    axes.set_xticklabels([f"{percentile:g} %" for percentile in named])
    axes.set_xlabel("share of the decisions that took at most this long")
    axes.grid(axis="x", color=FAINT, linewidth=0.8)


def _label_curves(axes: Axes, ends: list[tuple[float, float, ModeResult]]) -> None:
    """Names each curve at its end, beside the plot, pushed apart where two of them end close together."""
    low, high = (math.log10(limit) for limit in axes.get_ylim())
    apart = (high - low) * 0.105
    ends = sorted(ends, key=lambda end: end[1])
    heights = [math.log10(end[1]) for end in ends]
    for index in range(1, len(heights)):
        heights[index] = max(heights[index], heights[index - 1] + apart)
    excess = max(0.0, heights[-1] - high)
    for (_, _, result), height in zip(ends, heights, strict=True):
        place = (1.02, (height - excess - low) / (high - low))
        figures = f"p50 {format_number(result.p50_ms)} · p99 {format_number(result.p99_ms)} ms"
        for text, style in (
            (f"{result.mode}\n", {"color": COLOURS[result.mode], "fontweight": "bold"}),
            (f"\n{figures}", {"fontsize": 9.5}),
        ):
            axes.text(*place, text, transform=axes.transAxes, va="center", **style)


def _timeline_figure(results: Sequence[ModeResult]) -> Figure | None:
    shown = [result for result in results if any(second.max_ms is not None for second in result.timeline)]
    if not shown:
        return None
    columns = min(2, len(shown))
    figure = Figure(figsize=(9.2, 0.7 + 1.75 * math.ceil(len(shown) / columns)), layout="constrained")
    grid = figure.subplots(math.ceil(len(shown) / columns), columns, sharex=True, sharey=True, squeeze=False)
    latencies = [
        _floor(latency)
        for result in shown
        for second in result.timeline
        for latency in (second.p50_ms, second.max_ms)
        if latency is not None
    ]
    for axes, result in itertools.zip_longest(grid.flat, shown):
        if result is None:
            axes.set_visible(False)
            continue
        _draw_seconds(axes, result)
        latency_axis(axes, latencies)
        axes.yaxis.set_major_locator(FixedLocator([1, 10, 100, 1000, 10_000, 100_000]))
        axes.set_xlim(1, max(2, max(len(result.timeline) for result in shown)))
    for axes in grid[-1]:
        axes.set_xlabel("measured second")
    return figure


def _draw_seconds(axes: Axes, result: ModeResult) -> None:
    colour, marker = COLOURS[result.mode], MARKERS[result.mode]
    seconds = [second for second in result.timeline if second.p50_ms is not None and second.max_ms is not None]
    x = [second.second for second in seconds]
    medians = [_floor(second.p50_ms or 0) for second in seconds]
    slowest = [_floor(second.max_ms or 0) for second in seconds]
    axes.fill_between(x, medians, slowest, color=colour, alpha=0.22, linewidth=0)
    axes.plot(x, medians, color=colour, linewidth=1.8, marker=marker, markersize=3.5, clip_on=False)
    axes.axhline(OBJECTIVE_MS, color=OBJECTIVE_INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_title(result.mode, loc="left", color=colour, fontweight="bold", fontsize=11)
