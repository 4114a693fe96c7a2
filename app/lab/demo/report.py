"""The demo's report: `demo-report.html` to look at and `demo-report.json` to compute with."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure

from fraud_filter.modes import OBJECTIVE_MS
from fraud_filter.pages.plotting import RC, svg
from fraud_filter.pages.template import render
from lab.bench.plan import BenchPlan
from lab.bench.results import figures as plots
from lab.bench.results.report import write_files
from lab.bench.results.summary import summarise_rounds
from lab.bench.results.table import rounded
from lab.demo.result import ModeResult, figures, share_within
from lab.demo.rules import FAMILIES, detection

HTML_NAME = "demo-report.html"
JSON_NAME = "demo-report.json"


@dataclass(frozen=True)
class DemoReport:
    """Everything that the report tells: what was planned, what came out, and on what it ran."""

    plan: BenchPlan
    results: Sequence[ModeResult]
    versions: Mapping[str, str]
    machine: Mapping[str, str | int | float]
    settings: Mapping[str, str | int | float]
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    took_s: float = 0

    @property
    def ok(self) -> bool:
        """Whether every planned mode ran to its end with a clean audit."""
        return len(self.results) == len(self.plan.contenders) and all(result.ok for result in self.results)

    @property
    def problems(self) -> list[str]:
        """What went wrong, a sentence a mode; empty when nothing did."""
        return [f"{result.mode}: {result.problem}" for result in self.results if result.problem]


def write_report(report: DemoReport, png: Path | None = None) -> list[Path]:
    """Writes the page, the JSON, and the plot where `png` asks for it; returns the paths written.

    Raises:
        FraudFilterError: a file can't be written.
    """
    folder, data = report.plan.output, report_data(report)
    texts = {folder / HTML_NAME: render_html(report), folder / JSON_NAME: json.dumps(data, indent=2) + "\n"}
    with mpl.rc_context(RC):
        plot = percentile_plot(report) if png else None
        return write_files(texts, {png: plot} if png and plot else {})


def report_data(report: DemoReport) -> dict[str, Any]:
    """The report as plain data. Times are in the unit their name ends with; null is not measured, never zero."""
    return {
        "ok": report.ok,
        "started_at": report.started_at.isoformat(timespec="seconds"),
        "took_s": round(report.took_s, 1),
        "objective_ms": OBJECTIVE_MS,
        "detection": detection(report.results),
        "modes": {result.mode: figures(result) for result in report.results},
        "versions": dict(report.versions),
        "machine": dict(report.machine),
        "settings": dict(report.settings),
    }


def percentile_plot(report: DemoReport) -> Figure | None:
    """Latency by percentile of all modes; None when nothing was measured. Call it within matplotlib's `RC`."""
    starts = [result.start for result in report.results]
    return plots.percentiles(starts, summarise_rounds(starts), report.plan.rates[0])


def render_html(report: DemoReport) -> str:
    """The page: one file that loads nothing, for the screen and for paper."""
    modes = report_data(report)["modes"]
    measured = [name for name, mode in modes.items() if mode["p50_ms"] is not None and "error" not in mode]
    with mpl.rc_context(RC):
        drawn = percentile_plot(report), plots.over_time([one.start for one in report.results], report.plan.rates[0])
        figures_svg = [Markup(svg(figure)) if figure else "" for figure in drawn]  # noqa: S704 - drawn by us, escaped
    return render(
        "lab.demo",
        "report.html.j2",
        {"rounded": rounded},
        plan=report.plan,
        modes=modes,
        families=FAMILIES,
        best=min(measured, key=lambda name: modes[name]["p50_ms"], default=None),
        within={result.mode: _percent_within(result) for result in report.results},
        objective_ms=OBJECTIVE_MS,
        ok=report.ok,
        problems=report.problems or ["the demo was not finished"],
        percentile_svg=figures_svg[0],
        timeline_svg=figures_svg[1],
        versions=report.versions,
        machine=report.machine,
        settings=report.settings,
        started_at=report.started_at,
    )


def _percent_within(result: ModeResult) -> float | None:
    """Percent of the payments within the objective, cut to one decimal: 99.97 must not read as 100."""
    share = share_within(result.measured.append_ms, OBJECTIVE_MS) if result.measured else None
    return None if share is None else math.floor(share * 1000) / 10
