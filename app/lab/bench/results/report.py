"""The bench's report: `bench-report.json` with every figure, `bench-report.html` to look at, and its plots as PNG."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure

from fraud_filter.errors import FraudFilterError
from fraud_filter.pages.plotting import RC, svg
from fraud_filter.pages.template import render
from lab.bench.names import CONTENDERS
from lab.bench.plan import BenchPlan
from lab.bench.results import figures
from lab.bench.results.result import StartResult
from lab.bench.results.summary import P99_LIMIT_MS, find_limits, ratios, summarise_rounds, summarise_starts
from lab.bench.results.table import rounded
from lab.bench.results.undisturbed import MOST_STOLEN
from lab.harness.outcome import to_plain

JSON_NAME = "bench-report.json"
HTML_NAME = "bench-report.html"
_UNCLEAN = "the audit found lost or unexpected payments"


@dataclass(frozen=True)
class BenchReport:
    """Everything that the report tells: what was planned, what came out, and on what it ran."""

    plan: BenchPlan
    starts: Sequence[StartResult]
    versions: Mapping[str, str]
    machine: Mapping[str, str | int | float]
    settings: Mapping[str, str | int | float]
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    took_s: float = 0

    @property
    def ok(self) -> bool:
        """Whether every planned start ran to its end with clean audits."""
        return len(self.starts) == len(self.plan.contenders) * self.plan.rounds and not self.problems

    @property
    def problems(self) -> list[str]:
        """What went wrong, a sentence each; empty when nothing did."""
        return [
            f"round {start.round}, {start.contender}: {start.error or _UNCLEAN}"
            for start in self.starts
            if not start.ok
        ]


def report_data(report: BenchReport) -> dict[str, Any]:
    """The report as plain data. Units end the names; null is not measured, never zero."""
    results = summarise_rounds(report.starts)
    return {
        "ok": report.ok,
        "started_at": report.started_at.isoformat(timespec="seconds"),
        "took_s": round(report.took_s, 1),
        "results": results,
        "ratios": ratios(report.starts, min(report.plan.rates)),
        "limits": find_limits(results, P99_LIMIT_MS),
        "starts": summarise_starts(report.starts),
        "versions": dict(report.versions),
        "machine": dict(report.machine),
        "settings": dict(report.settings),
        "rounds": [_start_data(start) for start in report.starts],
    }


def _start_data(start: StartResult) -> dict[str, Any]:
    rates = [{**to_plain(rate), "cpu_s_per_1000": rate.cpu_s_per_1000} for rate in start.rates]
    return {**asdict(start), "rates": rates}


def draw(report: BenchReport, results: Sequence[Mapping[str, Any]]) -> dict[str, Figure]:
    """The plots by their names, those of which nothing was measured left out. Call it within matplotlib's `RC`."""
    lowest = min(report.plan.rates)
    drawn = {f"percentiles-{rate:g}": figures.percentiles(report.starts, results, rate) for rate in report.plan.rates}
    drawn |= {
        "over-time": figures.over_time(report.starts, lowest),
        "throughput": figures.throughput(results),
        "cost": figures.cost(results),
    }
    return {name: figure for name, figure in drawn.items() if figure is not None}


def render_html(report: BenchReport) -> str:
    """The page: one file that loads nothing, for the screen and for paper."""
    data = report_data(report)
    with mpl.rc_context(RC):
        plots = {name: Markup(svg(figure)) for name, figure in draw(report, data["results"]).items()}  # noqa: S704
    lowest = min(report.plan.rates)
    return render(
        "lab.bench",
        "report.html.j2",
        {"rounded": rounded},
        plan=report.plan,
        data=data,
        lowest=lowest,
        first={result["mode"]: result for result in data["results"] if result["rate"] == lowest},
        behind=[result for result in data["results"] if not result["keeps_up"]],
        p99_limit_ms=P99_LIMIT_MS,
        most_stolen=MOST_STOLEN,
        words=CONTENDERS,
        plots=plots,
        problems=report.problems or ["the bench was not finished"],
        started_at=report.started_at,
    )


def write_report(report: BenchReport) -> list[Path]:
    """Writes the files into the plan's output directory; returns their paths.

    Raises:
        FraudFilterError: a file can't be written.
    """
    folder, data = report.plan.output, report_data(report)
    with mpl.rc_context(RC):
        plots = {folder / f"bench-{name}.png": figure for name, figure in draw(report, data["results"]).items()}
        texts = {folder / HTML_NAME: render_html(report), folder / JSON_NAME: json.dumps(data, indent=1) + "\n"}
        return write_files(texts, plots)


def write_files(texts: Mapping[Path, str], plots: Mapping[Path, Figure]) -> list[Path]:
    """Writes texts, and plots as PNG, 200 dots per inch; returns the paths. Call it within matplotlib's `RC`.

    Raises:
        FraudFilterError: a file can't be written.
    """
    try:
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
        for path, figure in plots.items():
            figure.savefig(path, format="png", dpi=200, facecolor="white")
    except OSError as error:
        raise FraudFilterError(f"the report can't be written: {error}") from None
    return [*texts, *plots]
