"""Latency by percentile as a plot, from the due time on; every further nine of the share takes the same width."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from fraud_filter.modes import OBJECTIVE_MS
from lab.bench.look import FAINT, OBJECTIVE_INK, Look
from lab.bench.result import StartResult
from lab.bench.statistics import ENOUGH_FOR_P999, PERCENTILES, Counts, percentiles
from lab.bench.table import rounded

#: Points of a curve.
_POINTS = 200
#: Characters of a contender's name.
_LONGEST = 24
#: Where a curve begins: what a hundredth of the decisions did not exceed.
_FIRST = 0.01
_NAMED = (0, 0.5, 0.9, 0.99, 0.999)
#: A logarithmic axis has no zero.
_LEAST_MS = 0.05


def plot_percentiles(
    starts: Sequence[StartResult], results: Sequence[Mapping[str, Any]], rate: float, looks: Mapping[str, Look]
) -> Figure | None:
    """The curve of each contender at one rate, the mean of its rounds; None when nothing was measured.

    It ends at the 99th percentile, and at the 99.9th where there are enough decisions for that.
    """
    figure = Figure(figsize=(9.2, 4.9), layout="constrained")
    axes = figure.add_subplot()
    right = 0.0
    for result in results:
        rounds = _rounds(starts, result["mode"], rate)
        if result["rate"] == rate and rounds:
            text = f"p50 {rounded(result['due_p50_ms'])} · p99 {rounded(result['due_p99_ms'])} ms"
            right = max(right, _draw(axes, rounds, looks[result["mode"]], f"{_short(result['mode'])}\n{text}"))
    if not right:
        return None
    _share_axis(axes, right)
    _latency_axis(axes)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, labelspacing=0.9)
    return figure


def _short(name: str) -> str:
    """The name as a plot has room for it; the table has all of it."""
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _rounds(starts: Sequence[StartResult], name: str, rate: float) -> list[Counts]:
    """The latencies of each round that counts and has any."""
    mine = [start for start in starts if start.contender == name and not start.is_set_aside]
    return [one.due_20us for start in mine for one in start.rates if one.rate == rate and one.due_20us]


def _draw(axes: Axes, rounds: Sequence[Counts], look: Look, label: str) -> float:
    """Draws a contender's curve; returns where on the axis it ends."""
    end = 0.999 if sum(sum(counts.values()) for counts in rounds) >= ENOUGH_FOR_P999 else 0.99
    places = np.linspace(position(_FIRST), position(end), _POINTS).tolist()
    axes.plot(places, _mean(rounds, [1 - 10**-place for place in places]), color=look.colour, linewidth=2.2)
    marked = sorted({*PERCENTILES.values(), end})
    axes.plot([position(share) for share in marked], _mean(rounds, marked), look.marker,
              color=look.colour, markersize=6.5, markeredgecolor="white", label=label)  # fmt: skip
    return position(end)


def _mean(rounds: Sequence[Counts], shares: Sequence[float]) -> list[float]:
    """The geometric mean of the rounds' percentiles, as in the results."""
    several = np.maximum([percentiles(counts, shares) for counts in rounds], _LEAST_MS)
    latencies: list[float] = np.exp(np.log(several).mean(axis=0)).tolist()
    return latencies


def position(share: float) -> float:
    """Where a percentile (as a share, 0 to below 1) stands on the axis: 0.9 at 1, 0.99 at 2, 0.999 at 3."""
    return -math.log10(1 - share)


def _share_axis(axes: Axes, right: float) -> None:
    named = [share for share in _NAMED if position(share) <= right + 1e-9]
    axes.set_xlim(0, right)
    axes.xaxis.set_major_locator(FixedLocator([position(share) for share in named]))
    axes.set_xticklabels([f"{share * 100:g} %" for share in named])
    axes.set_xlabel("share of the decisions that took at most this long")
    axes.grid(axis="x", color=FAINT, linewidth=0.8)


def _latency_axis(axes: Axes) -> None:
    """Logarithmic, with ticks at 1, 2, 5, 10 … milliseconds, and the objective as a dashed line."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=50))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda tick, _: _format_latency(tick)))
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.axhline(OBJECTIVE_MS, color=OBJECTIVE_INK, linewidth=1.2, linestyle=(0, (4, 3)))
    axes.annotate(f"objective {OBJECTIVE_MS:g} ms", (0, OBJECTIVE_MS), (4, 4), xycoords=axes.get_yaxis_transform(),
                  textcoords="offset points", color=OBJECTIVE_INK, fontsize=10)  # fmt: skip


def _format_latency(latency_ms: float) -> str:
    """A latency on an axis: "20 ms", "1.5 s"."""
    return f"{latency_ms:,g} ms" if latency_ms < 1000 else f"{latency_ms / 1000:g} s"
