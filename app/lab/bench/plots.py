"""Latency by percentile as a plot, from the due time on, and how each contender is drawn there and on the page."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from fraud_filter.modes import MODES, OBJECTIVE_MS
from lab.bench.result import StartResult
from lab.bench.statistics import ENOUGH_FOR_P999, PERCENTILES, Counts, percentiles
from lab.bench.table import rounded


class Look(NamedTuple):
    """How a contender is drawn; the marker by matplotlib's name."""

    colour: str
    marker: str


#: Okabe and Ito's palette, and never colour alone (curves and rows carry the mode's name), so that a print in grey or a
#: colour-blind eye can tell the modes apart.
LOOKS: Mapping[str, Look] = {
    **{mode.name: Look(mode.colour, mode.marker) for mode in MODES.values()},
    "streams": Look("#5f6b76", "v"),
    "streams-eos": Look("#9aa3ab", "h"),
    "flink": Look("#7b5ea7", "P"),
    "flink-eos": Look("#b49bd6", "8"),
    "velocity": Look("#8a6d1b", "d"),
    "flink-velocity": Look("#b0529c", "X"),
    "flink-json": Look("#4f3a86", "p"),
    "spark": Look("#b3541e", "<"),
    "copy": Look("#3f7f93", "H"),
    "flink-copy": Look("#c08fc9", "1"),
}
#: Of a mode with another setting, say: eight colours and markers, in order.
_OTHERS = tuple(
    map(
        Look,
        ("#2f5d9b", "#c2571a", "#2b8a5b", "#8b4fb3", "#b23a48", "#6b7a2a", "#17818f", "#7a5b3e"),
        "osD^v<>*",
    )
)
_FAINT, _OBJECTIVE = "#d9dfe5", "#4a5560"
#: Matplotlib's settings for every plot.
RC: Any = {
    "font.family": "sans-serif",
    "font.size": 11,
    "axes.edgecolor": "#9aa5b1",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",  # text stays text: small, searchable, and in the page's own font
    "svg.hashsalt": "fraud-filter",  # the same figures give the same file
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), "#1f2933"),
}
#: Points of a curve, and where it begins: what a hundredth of the decisions did not exceed.
_POINTS, _FIRST = 200, 0.01
#: Characters of a contender's name.
_LONGEST = 24
_NAMED = (0.01, 0.1, 0.5, 0.9, 0.99, 0.999)
#: A logarithmic axis has no zero.
_LEAST_MS = 0.05


def looks(names: Sequence[str]) -> dict[str, Look]:
    """The look of each contender."""
    others = itertools.cycle(_OTHERS)
    return {name: LOOKS.get(name) or next(others) for name in names}


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
        name = result["mode"]
        mine = [start for start in starts if start.contender == name and not start.is_set_aside]
        rounds = [one.due_20us for start in mine for one in start.rates if one.rate == rate and one.due_20us]
        if result["rate"] == rate and rounds:
            short = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
            text = f"p50 {rounded(result['due_p50_ms'])} · p99 {rounded(result['due_p99_ms'])} ms"
            right = max(right, _draw(axes, rounds, looks[name], f"{short}\n{text}"))
    if not right:
        return None
    _share_axis(axes, right)
    _latency_axis(axes)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, labelspacing=0.9)
    return figure


def _draw(axes: Axes, rounds: Sequence[Counts], look: Look, label: str) -> float:
    """Draws a contender's curve; returns the share at which it ends."""
    end = 0.999 if sum(sum(counts.values()) for counts in rounds) >= ENOUGH_FOR_P999 else 0.99
    odds = np.geomspace(_FIRST / (1 - _FIRST), end / (1 - end), _POINTS)  # even steps of the axis
    shares = (odds / (1 + odds)).tolist()
    axes.plot(shares, _mean(rounds, shares), color=look.colour, linewidth=2.2)
    marked = sorted({*PERCENTILES.values(), end})
    axes.plot(marked, _mean(rounds, marked), look.marker,
              color=look.colour, markersize=6.5, markeredgecolor="white", label=label)  # fmt: skip
    return end


def _mean(rounds: Sequence[Counts], shares: Sequence[float]) -> list[float]:
    """The geometric mean of the rounds' percentiles, as in the results."""
    several = np.maximum([percentiles(counts, shares) for counts in rounds], _LEAST_MS)
    latencies: list[float] = np.exp(np.log(several).mean(axis=0)).tolist()
    return latencies


def _share_axis(axes: Axes, right: float) -> None:
    """By the logit: every further nine takes the same width."""
    axes.set_xscale("logit")
    axes.set_xlim(_FIRST, right)
    axes.xaxis.set_major_locator(FixedLocator(_NAMED))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share * 100:g} %"))
    axes.set_xlabel("share of the decisions that took at most this long")
    axes.grid(axis="x", color=_FAINT, linewidth=0.8)


def _latency_axis(axes: Axes) -> None:
    """Logarithmic, with ticks at 1, 2, 5, 10 … milliseconds, and the objective as a dashed line."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=50))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda ms, _: f"{ms:,g} ms" if ms < 1000 else f"{ms / 1000:g} s"))
    axes.grid(axis="y", color=_FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.axhline(OBJECTIVE_MS, color=_OBJECTIVE, linewidth=1.2, linestyle=(0, (4, 3)))
    axes.annotate(f"objective {OBJECTIVE_MS:g} ms", (0, OBJECTIVE_MS), (4, 4), xycoords=axes.get_yaxis_transform(),
                  textcoords="offset points", color=_OBJECTIVE, fontsize=10)  # fmt: skip


def svg(figure: Figure) -> str:
    """The figure as an element to stand in a page: no prolog, no fixed size, the page's font."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    for size in ("width", "height"):
        text = re.sub(rf'(<svg[^>]*?) {size}="[^"]*"', r"\1", text, count=1)
    return re.sub(r"(font: [^;\"]*?px) [^;\"]*", r"\1 system-ui, sans-serif", text)
