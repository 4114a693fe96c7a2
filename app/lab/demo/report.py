"""The demo's report: `demo-report.html` to look at and `demo-report.json` to compute with,"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fraud_filter.errors import FraudFilterError
from fraud_filter.metrics.latency import OBJECTIVE_MS
from fraud_filter.pages.template import render
from lab.demo import figures
from lab.demo.plan import DemoPlan
from lab.demo.result import ModeResult, share_within
from lab.demo.wording import describe_problem
from lab.harness.outcome import to_plain

HTML_NAME = "demo-report.html"
JSON_NAME = "demo-report.json"


@dataclass(frozen=True)
class DemoReport:
    """Everything that the report tells: what was planned, what came out, and on what it ran."""

    plan: DemoPlan
    results: Sequence[ModeResult]
    versions: Mapping[str, str]
    machine: Mapping[str, str | int | float]
    settings: Mapping[str, str | int | float]
    topics: Mapping[str, str]
    started_at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    took_s: float = 0

    @property
    def ok(self) -> bool:
        """Whether every planned mode ran to its end with a clean audit."""
        return len(self.results) == len(self.plan.modes) and all(result.ok for result in self.results)

    @property
    def problems(self) -> list[str]:
        """What went wrong, a sentence a mode; empty when nothing did."""
        return [f"{result.mode}: {problem}" for result in self.results if (problem := describe_problem(result))]


def write_report(report: DemoReport) -> list[Path]:
    """Writes the page, the JSON, and the plot where `plan.png` asks for it; returns the paths written.

    Raises:
        FraudFilterError: a file can't be written.
    """
    html, data = report.plan.output / HTML_NAME, report.plan.output / JSON_NAME
    written = [html, data]
    try:
        html.write_text(render_html(report), encoding="utf-8")
        data.write_text(json.dumps(report_data(report), indent=2) + "\n", encoding="utf-8")
        if report.plan.png is not None and figures.save_png(report.results, report.plan.png):
            written.append(report.plan.png)
    except OSError as error:
        raise FraudFilterError(f"the report can't be written: {error}") from None
    return written


def report_data(report: DemoReport) -> dict[str, Any]:
    """The report as plain data. Times are in the unit their name ends with; null is not measured, never zero.

    `distribution` gives the number of decisions for each latency in whole milliseconds.
    """
    modes = {}
    for result in report.results:
        data = to_plain(result)
        data["ok"] = result.ok
        data["distribution"] = {str(ms): result.distribution[ms] for ms in sorted(result.distribution)}
        del data["mode"]
        if result.error is None:
            del data["error"]
        modes[result.mode] = data
    return {
        "ok": report.ok,
        "started_at": report.started_at.isoformat(timespec="seconds"),
        "took_s": round(report.took_s, 1),
        "objective_ms": OBJECTIVE_MS,
        "modes": modes,
        "versions": dict(report.versions),
        "machine": dict(report.machine),
        "settings": dict(report.settings),
    }


def _percent_within(result: ModeResult) -> float | None:
    """Percent of the payments within the objective, cut to one decimal: 99.97 must not read as 100."""
    share = share_within(result.distribution, OBJECTIVE_MS)
    return None if share is None else math.floor(share * 1000) / 10


def render_html(report: DemoReport) -> str:
    """The page: one file that loads nothing, for the screen and for paper."""
    measured = [result for result in report.results if result.p50_ms is not None and result.error is None]
    return render(
        "lab.demo",
        "report.html.j2",
        plan=report.plan,
        results=report.results,
        best=min(measured, key=lambda result: result.p50_ms or 0, default=None),
        within={result.mode: _percent_within(result) for result in report.results},
        objective_ms=OBJECTIVE_MS,
        ok=report.ok,
        problems=report.problems or ["the demo was not finished"],
        percentile_svg=Markup(figures.percentile_svg(report.results)),  # noqa: S704 - drawn by us, text escaped
        timeline_svg=Markup(figures.timeline_svg(report.results)),  # noqa: S704 - drawn by us, text escaped
        versions=report.versions,
        machine=report.machine,
        settings=report.settings,
        topics=report.topics,
        started_at=report.started_at,
    )
