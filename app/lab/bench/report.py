"""The report of a bench: JSON with every figure, a page to look at, and its plots as PNG."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure

from fraud_filter.errors import FraudFilterError
from fraud_filter.modes import OBJECTIVE_MS
from lab.bench import plots
from lab.bench.plan import Load
from lab.bench.plots import RC, looks, svg
from lab.bench.result import MOST_STOLEN, StartResult
from lab.bench.summary import compare, names_of, summarise_rounds
from lab.bench.table import (
    BENCH,
    COLUMNS,
    FAMILY_WORDS,
    markdown_kills,
    markdown_results,
    rounded,
    verdict_lines,
)
from lab.harness.outcome import to_plain
from lab.harness.tables import format_number, write_between


@dataclass(frozen=True)
class Report:
    """Everything that the report tells: the load, what came out, and on what it ran.

    `plans` are what engines make of the query, as they explain it, by contender; `broker_alone` what a record takes to
    the broker and back, as `closed_loop` measures it.
    """

    starts: Sequence[StartResult]
    load: Load
    versions: Mapping[str, str]
    machine: Mapping[str, str | int | float]
    settings: Mapping[str, Any]
    plans: Mapping[str, str] = field(default_factory=dict)
    broker_alone: Mapping[str, float] | None = None
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    took_s: float = 0

    @property
    def ok(self) -> bool:
        """Whether every start ran to its end with clean audits."""
        return not self.problems

    @property
    def problems(self) -> list[str]:
        """What went wrong, a sentence each; empty when nothing did."""
        return [f"round {one.round}, {one.contender}: {one.problem}" for one in self.starts if one.problem]


def report_data(report: Report) -> dict[str, Any]:
    """The report as plain data. Units end the names; null is not measured, never zero."""
    results = summarise_rounds(report.starts)
    return {
        "ok": report.ok,
        "started_at": report.started_at.isoformat(timespec="seconds"),
        "took_s": round(report.took_s, 1),
        "results": results,
        "compared": compare(report.starts),
        "versions": dict(report.versions),
        "machine": dict(report.machine),
        "settings": dict(report.settings),
        "broker_alone": report.broker_alone,
        "plans": dict(report.plans),
        "rounds": [_start_data(start) for start in report.starts],
    }


def _start_data(start: StartResult) -> dict[str, Any]:
    rates = [{**to_plain(rate), "cpu_s_per_1000": rate.per_1000("contender")} for rate in start.rates]
    return {**asdict(start), "rates": rates}


def draw(report: Report, results: Sequence[Mapping[str, Any]]) -> dict[str, Figure]:
    """A plot by percentile for each rate at which anything was measured. Call it within matplotlib's `RC`."""
    look = looks(names_of(report.starts))
    drawn = {
        f"percentiles-{rate:g}": plots.plot_percentiles(report.starts, results, rate, look)
        for rate in report.load.rates
    }
    return {name: figure for name, figure in drawn.items() if figure is not None}


def render_html(report: Report) -> str:
    """The page: one file that loads nothing, for the screen and for paper."""
    data = report_data(report)
    with mpl.rc_context(RC):
        drawn = {name: Markup(svg(figure)) for name, figure in draw(report, data["results"]).items()}  # noqa: S704
    lowest = min(report.load.rates)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("lab.bench", ""), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"number": format_number, "rounded": rounded}
    return environment.get_template("report.html.j2").render(
        load=report.load,
        data=data,
        lowest=lowest,
        first={result["mode"]: result for result in data["results"] if result["rate"] == lowest},
        behind=[result for result in data["results"] if not result["keeps_up"]],
        failed=[start for start in report.starts if start.error],
        objective_ms=OBJECTIVE_MS,
        most_stolen=MOST_STOLEN,
        columns=[COLUMNS[name] for name in (*BENCH, "first", "flagged", "rejected")],
        families=FAMILY_WORDS,
        verdicts=verdict_lines(data["compared"]),
        looks=looks(names_of(report.starts)),
        plots=drawn,
        problems=report.problems,
        started_at=report.started_at,
    )


def write_report(report: Report, folder: Path, stem: str) -> list[Path]:
    """Writes STEM-report.html and STEM-report.json into the folder, and a bench's plots as PNG; returns the paths.

    Raises:
        FraudFilterError: a file can't be written.
    """
    data, page, raw = report_data(report), folder / f"{stem}-report.html", folder / f"{stem}-report.json"
    try:
        page.write_text(render_html(report), encoding="utf-8")
        raw.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        with mpl.rc_context(RC):
            drawn = draw(report, data["results"]) if stem == "bench" else {}
            pictures = {folder / f"{stem}-{name}.png": figure for name, figure in drawn.items()}
            for path, figure in pictures.items():
                figure.savefig(path, format="png", dpi=200, facecolor="white")
    except OSError as error:
        raise FraudFilterError(f"the report can't be written: {error}") from None
    return [page, raw, *pictures]


def table_name(query: str, *, killed: bool) -> str:
    """The name of a table's place in a Markdown file: of a query of the user's that of its function.

    Args:
        query: the setting of that name.
        killed: the contenders were.
    """
    return "kills" if killed else query.rpartition(":")[2] or "bench"


def write_docs(file: Path, data: Mapping[str, Any], name: str) -> None:
    """Writes the table of results into a Markdown file, and what it was made from beside it: NAME.json.gz.

    Args:
        data: a report's, as `report_data` gives it.
        name: as of `table_name`.

    Raises:
        FraudFilterError: a file can't be written.
    """
    write_between(file, name, (markdown_kills if name == "kills" else markdown_results)(data))
    raw = json.dumps(data, separators=(",", ":")).encode()
    try:
        file.with_name(f"{name}.json.gz").write_bytes(gzip.compress(raw, mtime=0))
    except OSError as error:
        raise FraudFilterError(f"the raw data can't be written: {error}") from None
