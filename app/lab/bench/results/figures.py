"""The plots of a bench, drawn by matplotlib from the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from fraud_filter.metrics.latency import Second
from fraud_filter.pages.palette import COLOURS, MARKERS
from fraud_filter.pages.percentile_plot import Curve, drawn, percentile_figure, position
from fraud_filter.pages.plotting import FAINT, latency_axis
from fraud_filter.pages.seconds_plot import seconds_figure
from lab.bench.names import CONTENDERS
from lab.bench.results.percentiles import PERCENTILES, grouped_percentile
from lab.bench.results.result import StartResult
from lab.bench.results.summary import median_of_known
from lab.bench.results.table import rounded

Results = Sequence[Mapping[str, Any]]

#: Points of a percentile curve.
_POINTS = 200


def percentiles(starts: Sequence[StartResult], results: Results, rate: float) -> Figure | None:
    """Latency by percentile at one rate, at each percentile the rounds' median; None when nothing was measured."""
    curves = []
    for result in results:
        rounds = _rounds(starts, result["mode"], rate)
        if result["rate"] == rate and rounds:
            text = f"p50 {rounded(result['p50_ms'])} · p99 {rounded(result['p99_ms'])} ms"
            curves.append(_curve(result["mode"], rounds, text))
    return percentile_figure(curves)


def over_time(starts: Sequence[StartResult], rate: float) -> Figure | None:
    """Median and longest latency of each measured second at one rate, the rounds one after the other."""
    panels: dict[str, list[Second]] = {}
    for start in starts:
        panel = panels.setdefault(start.contender, [])
        for one in start.rates:
            if one.rate == rate:
                panel += [replace(second, second=len(panel) + second.second) for second in one.timeline]
    return seconds_figure({name: panels[name] for name in CONTENDERS if name in panels})


def throughput(results: Results) -> Figure | None:
    """Latency against the rate: the median as a line, the 99th percentile dashed; what fell behind is hollow."""
    figure = Figure(figsize=(9.2, 4.6), layout="constrained")
    axes = figure.add_subplot()
    latencies = []
    for name, mine in _by_contender(results).items():
        for quantile, line in (("p50_ms", "-"), ("p99_ms", ":")):
            points = [(one["rate"], drawn(one[quantile]), one["keeps_up"]) for one in mine if one[quantile] is not None]
            latencies += [latency for _, latency, _ in points]
            _line(axes, name, points, line)
    if not latencies:
        return None
    latency_axis(axes, latencies)
    _rate_axis(axes, sorted({one["rate"] for one in results}))
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, title="line p50, dots p99")
    return figure


def cost(results: Results) -> Figure | None:
    """Processor seconds for a thousand payments, at each rate."""
    rates = sorted({one["rate"] for one in results})
    groups = _by_contender([one for one in results if one["cpu_s_per_1000"]])
    if not groups:
        return None
    figure = Figure(figsize=(9.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    width = 0.8 / len(groups)
    for number, (name, mine) in enumerate(groups.items()):
        places = [rates.index(one["rate"]) + (number - (len(groups) - 1) / 2) * width for one in mine]
        values = [one["cpu_s_per_1000"] for one in mine]
        bars = axes.bar(places, values, width * 0.92, color=COLOURS[name], label=name)
        axes.bar_label(bars, [rounded(value) for value in values], fontsize=8, padding=2, rotation=90)
    axes.set_yscale("log")
    axes.margins(y=0.18)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda seconds, _: rounded(seconds)))
    axes.set_ylabel("CPU seconds per 1,000 payments")
    axes.set_xticks(range(len(rates)), [f"{rate:,g}/s" for rate in rates])
    axes.tick_params(length=0)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return figure


def _rounds(starts: Sequence[StartResult], name: str, rate: float) -> list[Mapping[int, int]]:
    """Latencies by whole milliseconds of each round in which there were any."""
    mine = [one for start in starts if start.contender == name for one in start.rates if one.rate == rate]
    return [one.append_ms for one in mine if one.append_ms]


def _curve(name: str, rounds: Sequence[Mapping[int, int]], text: str) -> Curve:
    fewest = min(sum(counts.values()) for counts in rounds)
    end = position(1 - 0.5 / fewest)
    places = np.linspace(0, end, _POINTS).tolist()
    shares = [share / 100 for share in PERCENTILES.values() if position(share / 100) <= end]
    return Curve(
        name,
        (places, [_at(rounds, 1 - 10**-place) for place in places]),
        ([position(share) for share in shares], [_at(rounds, share) for share in shares]),
        text,
    )


def _at(rounds: Sequence[Mapping[int, int]], share: float) -> float:
    return drawn(median_of_known(grouped_percentile(counts, share * 100) for counts in rounds) or 0)


def _by_contender(results: Results) -> dict[str, list[Mapping[str, Any]]]:
    groups = {name: [one for one in results if one["mode"] == name] for name in CONTENDERS}
    return {name: mine for name, mine in groups.items() if mine}


def _line(axes: Axes, name: str, points: Sequence[tuple[float, float, bool]], line: str) -> None:
    colour = COLOURS[name]
    label = name if line == "-" else None
    axes.plot([x for x, _, _ in points], [y for _, y, _ in points], line, color=colour, linewidth=2, label=label)
    for x, y, keeps_up in points:
        axes.plot(x, y, MARKERS[name], color=colour, markersize=6, markerfacecolor=colour if keeps_up else "white")


def _rate_axis(axes: Axes, rates: Sequence[float]) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(rates))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda rate, _: f"{rate:,g}/s"))
    axes.set_xlim(rates[0] / 1.3, rates[-1] * 1.3)
    axes.set_xlabel("payments per second")
