"""A plot over the window: the time axis, the modes that ran, numbered events, and curves named at their ends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fraud_filter.pages.palette import COLOURS
from fraud_filter.pages.plotting import EDGE, FAINT, INK, pushed_apart
from fraud_filter.report.data import ReportData
from fraud_filter.report.prometheus import Series
from fraud_filter.report.window import Window

Values = NDArray[np.float64]
_dates: Any = dates  # matplotlib types nothing of it

WIDTH = 9.2
#: The same in every plot, in inches, so that the time axes of a page stand below each other.
_LEFT, _RIGHT, _TOP, _BOTTOM = 0.8, 1.75, 0.42, 0.42
#: Of the width of the axes: below that, numbers of events and names of modes would overlap.
_NUMBER_WIDTH, _LETTER_WIDTH = 0.022, 0.0125


def time_axes(data: ReportData, height: float) -> tuple[Figure, Axes]:
    """An empty plot of `height` inches over the window, with its modes and events."""
    figure = Figure(figsize=(WIDTH, height))
    figure.subplots_adjust(_LEFT / WIDTH, _BOTTOM / height, 1 - _RIGHT / WIDTH, 1 - _TOP / height)
    axes = figure.add_subplot()
    window = data.window
    axes.set_xlim(moment(window.start), moment(window.end))
    locator: Any = _dates.AutoDateLocator(minticks=4, maxticks=12)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(_dates.ConciseDateFormatter(locator, show_offset=False))
    axes.grid(color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.tick_params(axis="x", pad=7)  # the first label stands beside the zero of the other axis
    _draw_modes(axes, data)
    _draw_events(axes, data)
    return figure, axes


def moment(at: float) -> float:
    """A time in seconds since 1970 as matplotlib counts it, UTC."""
    return float(_dates.date2num(datetime.fromtimestamp(at, UTC)))


def times(window: Window) -> Values:
    """The times of a curve's points, as matplotlib counts them."""
    count = math.floor(window.seconds / window.step_s) + 1
    return moment(window.start) + np.arange(count) * window.step_s / 86_400


def values(series: Series, window: Window, factor: float = 1) -> Values:
    """The values at these times, `factor` times; no number where there is no data, which leaves a gap in the curve."""
    found = np.full(len(times(window)), np.nan)
    for time, value in series.points:
        found[round((time - window.start) / window.step_s)] = value * factor
    return found


def draw_curves(axes: Axes, window: Window, curves: Mapping[str, Values], colours: Mapping[str, str]) -> None:
    """Draws each curve; a point without neighbours, that makes no line, as a dot."""
    x = times(window)
    for name, y in curves.items():
        axes.plot(x, y, color=colours[name], linewidth=1.8, solid_capstyle="round", zorder=3)
        known = np.pad(np.isfinite(y), 1)
        lonely = known[1:-1] & ~known[:-2] & ~known[2:]
        axes.plot(x[lonely], y[lonely], color=colours[name], linestyle="none", marker="o", markersize=3, zorder=3)


def name_curves(figure: Figure, axes: Axes, ends: Mapping[str, tuple[float, str]], colours: Mapping[str, str]) -> None:
    """Writes name -> (height on the y axis, further text) beside the plot, pushed apart where two stand close."""
    apart = 0.5 / (figure.get_figheight() - _TOP - _BOTTOM) * 0.42
    placed = sorted((_share(axes, height), name, text) for name, (height, text) in ends.items())
    heights = pushed_apart([share for share, _, _ in placed], apart, 1)
    for (_, name, text), height in zip(placed, heights, strict=True):
        label = f"{name}  {text}" if text else name
        axes.text(1.015, height, label, transform=axes.transAxes, va="center", fontsize=10, color=colours[name])


def last(curve: Values) -> float:
    """The newest value of a curve that has one."""
    return float(curve[np.isfinite(curve)][-1])


def _share(axes: Axes, value: float) -> float:
    """Where a value stands on the y axis, from 0 (below) to 1 (above)."""
    point = axes.transData.transform((0, value))
    return min(1.0, max(0.0, float(axes.transAxes.inverted().transform(point)[1])))


def _draw_modes(axes: Axes, data: ReportData) -> None:
    """A strip above the plot that tells which mode ran, named where the name has room."""
    for span in data.spans:
        colour = COLOURS.get(span.mode, EDGE)
        start, end = moment(span.start), moment(span.end)
        axes.axvspan(start, end, ymin=1.012, ymax=1.035, color=colour, linewidth=0, clip_on=False)
        share = (span.end - span.start) / data.window.seconds
        if share > _LETTER_WIDTH * (len(span.mode) + 1):
            place = ((start + end) / 2, 1.05)
            axes.text(*place, span.mode, transform=axes.get_xaxis_transform(), ha="center", va="bottom", color=colour,
                      fontsize=9.5, fontweight="bold")  # fmt: skip


def _draw_events(axes: Axes, data: ReportData) -> None:
    """A line at each event, with the number that it has in the page's list where there is room."""
    numbered_at = -math.inf
    for number, event in enumerate(data.events, 1):
        share = (event.at - data.window.start) / data.window.seconds
        axes.axvline(moment(event.at), color=EDGE, linewidth=1.1, linestyle=(0, (2, 2)), zorder=2)
        if share - numbered_at >= _NUMBER_WIDTH:
            numbered_at = share
            axes.annotate(str(number), (moment(event.at), 1), (2, -2), xycoords=axes.get_xaxis_transform(),
                          textcoords="offset points", va="top", fontsize=9, fontweight="bold", color=INK)  # fmt: skip


def spread(names: Sequence[str], colours: Sequence[str]) -> dict[str, str]:
    """A colour for each name, in order, from the first again when there are more names."""
    return {name: colours[index % len(colours)] for index, name in enumerate(names)}
