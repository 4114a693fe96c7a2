"""The page of a report: figures, events and plots in one file that loads nothing."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path

from markupsafe import Markup

from fraud_filter.errors import UsageError
from fraud_filter.pages.numbers import NOT_MEASURED, format_number
from fraud_filter.pages.template import render
from fraud_filter.report import figures
from fraud_filter.report.data import Figures, ReportData
from fraud_filter.report.window import format_duration

_PLOTS = {
    "latency": figures.latency_svg,
    "distribution": figures.distribution_svg,
    "rates": figures.rates_svg,
    "lag": figures.lag_svg,
    "since_progress": figures.since_progress_svg,
    "phases": figures.phases_svg,
}


def render_page(data: ReportData) -> str:
    """The page as text."""
    return render(
        "fraud_filter.report",
        "page.html.j2",
        {"rounded": _rounded, "percent": _percent, "duration": format_duration, "clock": _clock},
        data=data,
        since=format_duration(data.window.seconds),
        start=_moment(data.window.start),
        end=_moment(data.window.end),
        newest=_newest(data),
        **{name: Markup(plot(data)) for name, plot in _PLOTS.items()},  # noqa: S704 - drawn by us, text escaped
    )


def _newest(data: ReportData) -> Figures | None:
    """The figures of the mode that ran last of those of which there are latencies."""
    known = {row.mode: row for row in data.modes if row.p99_ms is not None}
    order = [*(row.mode for row in data.modes), *(span.mode for span in data.spans)]
    return next((known[mode] for mode in reversed(order) if mode in known), None)


def write_page(data: ReportData, path: Path) -> None:
    """Writes the page to a file.

    Raises:
        UsageError: it can't be written.
    """
    page = render_page(data)
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"argument --output: {path} can't be written: {error.strerror or error}; name another file"
        ) from None


def _rounded(value: float | None) -> str:
    """Three digits: a percentile out of buckets has no more."""
    return format_number(None if value is None else float(f"{value:.3g}"))


def _percent(share: float | None) -> str:
    """A share in percent, cut to one decimal: 99.97 must not read as 100."""
    return NOT_MEASURED if share is None else f"{math.floor(share * 1000) / 10:g} %"


def _clock(at: float) -> str:
    return _moment(at).strftime("%Y-%m-%d %H:%M:%S")


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
