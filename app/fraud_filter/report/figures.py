"""The plots of a report, each as `<svg>` element; empty where there is nothing to draw."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import wraps

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from fraud_filter.pages.palette import COLOURS, SERIES
from fraud_filter.pages.plotting import (
    EDGE,
    FAINT,
    INK,
    OBJECTIVE_INK,
    RC,
    draw_objective,
    format_latency,
    latency_axis,
    latency_limits,
    mark_latencies,
    svg,
)
from fraud_filter.report.data import Distribution, ReportData
from fraud_filter.report.timeplot import WIDTH, Values, draw_curves, last, name_curves, spread, time_axes, times, values

_TALL, _LOW = 3.5, 2.5
#: Ticks of a latency axis that have room.
_MOST_TICKS = 10
#: Partitions that are drawn apart: those with the largest lag.
_PARTITIONS = 8
#: Latencies below this are drawn here: a logarithmic axis has no zero.
_FLOOR_MS = 0.5
_WHOLE_BATCH = "triggerExecution"
#: Phases of a micro-batch in the order in which they run (Spark guide, "Monitoring": durationMs).
_PHASES = ("latestOffset", "getBatch", "queryPlanning", "walCommit", "addBatch", "commitBatch", "commitOffsets")


def _drawn(draw: Callable[[ReportData], Figure | None]) -> Callable[[ReportData], str]:
    @wraps(draw)
    def element(data: ReportData) -> str:
        with mpl.rc_context(RC):
            figure = draw(data)
            return svg(figure) if figure else ""

    return element


@_drawn
def latency_svg(data: ReportData) -> Figure | None:
    """p50, p95 and p99 over time, against the objective."""
    curves = {name: np.maximum(values(found, data.window, 1000), _FLOOR_MS) for name, found in data.latency_s.items()}
    if not curves:
        return None
    figure, axes = time_axes(data, _TALL)
    colours = spread(list(curves), (SERIES[0], SERIES[2], SERIES[1]))
    latency_axis(axes, [extreme for y in curves.values() for extreme in (np.nanmin(y), np.nanmax(y))], _MOST_TICKS)
    for objective_ms in _objectives_ms(data):
        draw_objective(axes, objective_ms)
    draw_curves(axes, data.window, curves, colours)
    name_curves(
        figure, axes, {name: (last(y), format_latency(float(f"{last(y):.3g}"))) for name, y in curves.items()}, colours
    )
    return figure


@_drawn
def distribution_svg(data: ReportData) -> Figure | None:
    """How the latencies spread, by mode: steps over the histogram's buckets.

    Buckets differ in width, so a height is a share of the decisions for each doubling of the latency: areas compare.
    """
    if not data.distributions:
        return None
    figure = Figure(figsize=(WIDTH, _TALL))
    figure.subplots_adjust(0.8 / WIDTH, 0.55 / _TALL, 1 - 1.75 / WIDTH, 1 - 0.25 / _TALL)
    axes = figure.add_subplot()
    edges: list[float] = []
    for mode, distribution in data.distributions.items():
        limits, heights = _density(distribution)
        colour = COLOURS.get(mode, EDGE)
        axes.stairs(heights, limits, fill=True, color=colour, alpha=0.25, linewidth=0, zorder=2)
        axes.stairs(heights, limits, color=colour, linewidth=1.8, zorder=3)
        edges += [limits[0], limits[-1]]
    low, high = latency_limits(edges)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    mark_latencies(axes.xaxis, low, high, _MOST_TICKS)
    axes.set_ylim(0, None)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_ylabel("decisions per doubling")
    axes.set_xlabel("latency, append to append")
    axes.grid(color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    for objective_ms in _objectives_ms(data):
        axes.axvline(objective_ms, color=OBJECTIVE_INK, linewidth=1.2, linestyle=(0, (4, 3)), zorder=4)
        axes.annotate(f"objective {format_latency(objective_ms)}", (objective_ms, 1), (4, -2),
                      xycoords=axes.get_xaxis_transform(), textcoords="offset points", va="top",
                      color=OBJECTIVE_INK, fontsize=10)  # fmt: skip
    for index, mode in enumerate(data.distributions):
        text = f"{mode}\n{sum(data.distributions[mode].values()):,.0f} decisions"
        axes.text(1.015, 1 - 0.19 * index, text, transform=axes.transAxes, va="top", fontsize=10,
                  color=COLOURS.get(mode, INK))  # fmt: skip
    return figure


@_drawn
def rates_svg(data: ReportData) -> Figure | None:
    """Records per second: payments, flagged, rejected."""
    return _plain(data, {name: values(found, data.window) for name, found in data.rates.items()}, "records/s", "/s")


@_drawn
def lag_svg(data: ReportData) -> Figure | None:
    """Consumer lag by partition; of many partitions those with the largest."""
    curves = {f"partition {number}": values(found, data.window) for number, found in data.lags.items()}
    largest = sorted(curves, key=lambda name: -np.nanmax(curves[name]))[:_PARTITIONS]
    return _plain(data, {name: y for name, y in curves.items() if name in largest}, "records", "")


@_drawn
def since_progress_svg(data: ReportData) -> Figure | None:
    """Seconds since the newest commit."""
    found = data.since_progress_s
    return _plain(data, {"age": values(found, data.window)} if found else {}, "seconds", " s")


@_drawn
def phases_svg(data: ReportData) -> Figure | None:
    """Where the time of a micro-batch goes: its phases on top of each other."""
    known = {name: values(found, data.window, 1000) for name, found in data.phases_s.items() if name != _WHOLE_BATCH}
    if not known:
        return None
    order = sorted(known, key=lambda name: (_PHASES.index(name) if name in _PHASES else len(_PHASES), name))
    figure, axes = time_axes(data, _TALL)
    colours = spread(order, SERIES)
    below = np.zeros_like(known[order[0]])
    middles = {}
    for name in order:
        above = below + np.nan_to_num(known[name])
        present = np.isfinite(known[name])
        axes.fill_between(times(data.window), below, above, where=present, color=colours[name], alpha=0.75, linewidth=0)
        at = int(np.flatnonzero(present)[-1])
        middles[name] = (float(below[at] + above[at]) / 2, f"{known[name][at]:,.0f} ms")
        below = above
    axes.set_ylim(0, max(1.0, float(below.max()) * 1.08))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda tick, _: format_latency(tick)))
    name_curves(figure, axes, middles, colours)
    return figure


def _plain(data: ReportData, curves: Mapping[str, Values], unit: str, short: str) -> Figure | None:
    """Curves over a linear axis from zero."""
    if not curves:
        return None
    figure, axes = time_axes(data, _LOW)
    colours = spread(list(curves), SERIES)
    draw_curves(axes, data.window, curves, colours)
    axes.set_ylim(0, max(1.0, max(float(np.nanmax(y)) for y in curves.values()) * 1.1))
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:,g}"))
    axes.set_ylabel(unit)
    name_curves(
        figure, axes, {name: (last(y), f"{float(f'{last(y):.3g}'):,g}{short}") for name, y in curves.items()}, colours
    )
    return figure


def _objectives_ms(data: ReportData) -> list[float]:
    """The objectives of the modes, each once."""
    return sorted({row.objective_ms for row in data.modes if row.objective_ms is not None})


def _density(distribution: Distribution) -> tuple[list[float], list[float]]:
    """Edges in milliseconds and heights of the buckets from the first to the last that is not empty."""
    total = sum(distribution.values())
    limits = [_FLOOR_MS, *(limit_s * 1000 for limit_s in distribution)]
    if math.isinf(limits[-1]):  # as wide as a doubling, so that what is beyond the last limit shows
        limits[-1] = limits[-2] * 2
    counts = list(distribution.values())
    filled = [index for index, count in enumerate(counts) if count > 0]
    chosen = range(filled[0], filled[-1] + 1)
    heights = [counts[index] / total / math.log2(limits[index + 1] / limits[index]) for index in chosen]
    return limits[filled[0] : filled[-1] + 2], heights
