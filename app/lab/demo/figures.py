"""The plots of a demo, drawn by matplotlib: latency by percentile, and latency over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from fraud_filter.pages.numbers import format_number
from fraud_filter.pages.percentile_plot import Curve, Points, drawn, percentile_figure, position
from fraud_filter.pages.plotting import RC, svg
from fraud_filter.pages.seconds_plot import seconds_figure
from lab.demo.result import Distribution, ModeResult, quantile


def percentile_svg(results: Sequence[ModeResult]) -> str:
    """Latency by percentile, all modes in one plot, as `<svg>` element; empty when nothing was measured."""
    with mpl.rc_context(RC):
        figure = _percentile_figure(results)
        return svg(figure) if figure else ""


def timeline_svg(results: Sequence[ModeResult]) -> str:
    """Latency over the measured seconds, a panel a mode, as `<svg>` element; empty when there are none."""
    with mpl.rc_context(RC):
        figure = seconds_figure({result.mode: result.timeline for result in results})
        return svg(figure) if figure else ""


def save_png(results: Sequence[ModeResult], path: Path) -> bool:
    """Writes the percentile plot to `path`, 200 dots per inch; False when nothing was measured."""
    with mpl.rc_context(RC):
        figure = _percentile_figure(results)
        if figure:
            figure.savefig(path, format="png", dpi=200, facecolor="white")
        return figure is not None


def _percentile_figure(results: Sequence[ModeResult]) -> Figure | None:
    return percentile_figure(
        [
            Curve(
                result.mode,
                _steps(result.distribution),
                _named_points(result.distribution),
                f"p50 {format_number(result.p50_ms)} · p99 {format_number(result.p99_ms)} ms",
            )
            for result in results
            if result.distribution
        ]
    )


def _steps(distribution: Distribution) -> Points:
    """The quantile function as steps, up to the slowest record, whose share is that of its middle."""
    total = sum(distribution.values())
    xs, ys, seen = [0.0], [drawn(min(distribution))], 0
    for latency_ms in sorted(distribution):
        xs.append(xs[-1])
        ys.append(drawn(latency_ms))
        seen += distribution[latency_ms]
        xs.append(position(min(seen, total - 0.5) / total))
        ys.append(drawn(latency_ms))
    return xs, ys


def _named_points(distribution: Distribution) -> Points:
    total = sum(distribution.values())
    shares = [share for share in (0.5, 0.9, 0.99, 0.999) if total * (1 - share) >= 1]
    return [position(share) for share in shares], [drawn(quantile(distribution, share) or 0) for share in shares]
