"""The bench's report from sample results (made up, never measured): what is in it, and what it must not need."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bench_sample import CHANGED, MEDIANS, sample_rate, sample_report, sample_starts
from fraud_filter.errors import FraudFilterError
from fraud_filter.home import HOME
from lab.bench.report import render_html, report_data, table_name, write_docs, write_report
from lab.bench.result import RateResult, StartResult
from lab.bench.statistics import summarise
from lab.bench.summary import compare, summarise_rounds
from lab.bench.table import BENCH, DEMO, describe_start, detection_table, markdown_results, result_table
from lab.harness.outcome import NOT_AUDITED, Audited
from lab.harness.tables import NOT_MEASURED, find_place

FAILED = StartResult("streams", 1, error="Kafka Streams ended with exit code 1\n  <script>alert(1)</script>")


def test_the_table_for_the_documentation_has_a_line_for_each_contender() -> None:
    table, _, verdicts = markdown_results(report_data(sample_report())).partition("\n\n")
    head, _, *lines = table.splitlines()
    assert head.startswith("| contender | due p50, ms at 100/s | due p99, ms at 100/s | due p50, ms at 1,000/s |")
    assert "- At 1,000/s `real-time` against `streams`: p50 1." in verdicts
    assert [line.split(" | ")[0] for line in lines] == [f"| `{name}`" for name in MEDIANS]
    assert {line.count(" | ") for line in lines} == {head.count(" | ")}
    assert all(line.endswith(" | 2 + 0.5 | 2 + 0.5 | 0 |") for line in lines)


def test_what_was_not_audited_is_not_said_to_have_lost_nothing() -> None:
    starts = [StartResult("spark", number, (sample_rate("real-time", 100, 1, audit=NOT_AUDITED),)) for number in (1, 2)]
    assert f" | {NOT_MEASURED} |" in markdown_results(report_data(sample_report(starts)))


def _again(data: Mapping[str, Any]) -> str:
    """The table that raw data give, made anew from the latencies of each start."""
    names = {one.name for one in fields(RateResult)} - {"audit", "due_20us", "due"}
    starts = []
    for start in data["rounds"]:
        rates = []
        for rate in start["rates"]:
            counts = {int(step): count for step, count in rate["due_20us"].items()}
            audit = Audited(*(rate[name] for name in ("lost", "duplicated", "unexpected", "late_writes")))
            known = {name: rate[name] for name in names}
            rates.append(RateResult(**known, due=summarise(counts), due_20us=counts, audit=audit))
        starts.append(StartResult(**{**start, "rates": tuple(rates)}))
    return markdown_results({**data, "results": summarise_rounds(starts), "compared": compare(starts)})


def test_what_stands_beside_the_table_is_all_that_it_is_made_from(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    page.write_text("<!-- bench: begin -->\n<!-- bench: end -->\n")
    starts = [*sample_starts(), replace(sample_starts()[0], round=4, is_set_aside=True)]
    write_docs(page, report_data(sample_report(starts)), "bench")
    raw = json.loads(gzip.decompress((tmp_path / "bench.json.gz").read_bytes()))
    assert _again(raw) in page.read_text()
    assert [start["is_set_aside"] for start in raw["rounds"]].count(True) == 1


@pytest.mark.parametrize("file", sorted((HOME / "docs/results").glob("*.json.gz")), ids=lambda file: file.name)
def test_the_documented_table_is_that_of_its_raw_data(file: Path) -> None:
    name = file.name.partition(".")[0]
    page = HOME / "docs/results" / ("bench.md" if name in ("bench", "emit", "kills") else "published.md")
    made, text = _again(json.loads(gzip.decompress(file.read_bytes()))), page.read_text(encoding="utf-8")
    if name in ("q1", "q2", "q14", "q21", "q22"):  # a line each of one table
        assert made.splitlines()[2].replace("`real-time`", f"`{name}`") in text.splitlines()
        return
    before, after = find_place(page, name)
    assert text.removeprefix(before).removesuffix(after).strip() == made


@pytest.mark.parametrize(
    ("query", "killed", "name"),
    [("", False, "bench"), ("", True, "kills"), ("a.py:f", False, "f"), ("a.py:f", True, "kills")],
)
def test_each_kind_of_bench_has_a_place_of_its_own(query: str, killed: bool, name: str) -> None:
    assert table_name(query, killed=killed) == name


@pytest.fixture(scope="module")
def html() -> str:
    found = {"rules": {"precision": 0.5, "recall": 0.1}, "velocity": {"precision": None, "recall": 0.934}}
    changed = StartResult(CHANGED, 1, (sample_rate(CHANGED, 100, 1, detection=found),), 9.5)
    late = StartResult("micro-batch", 4, (sample_rate("micro-batch", 1000, 1, decided_share=0.9, lag=2957),))
    return render_html(sample_report([*sample_starts(), changed, late]))


def test_the_page_is_one_file_that_loads_nothing(html: str) -> None:
    addresses = re.findall(r'(?:src|href)="([^"]*)"', html)
    assert [address for address in addresses if not address.startswith(("#", "data:"))] == []
    assert "<script" not in html
    assert "@import" not in html
    assert html.count("<svg") == 2  # one for each rate


def test_a_failed_start_is_told_and_escaped() -> None:
    report = sample_report([*sample_starts()[3:], FAILED])
    html = render_html(report)
    assert not report.ok
    assert "round 1, streams: Kafka Streams ended with exit code 1" in html
    assert "streams failed." in html
    assert "<script>" not in html
    assert "Audits passed" not in html


def test_losses_are_a_problem() -> None:
    lossy = replace(sample_starts()[0], rates=(sample_rate("micro-batch", 100, 1, audit=Audited(3, 0, 0)),))
    report = sample_report([lossy, *sample_starts()[1:]])
    assert report.problems == ["round 1, micro-batch: the audit found lost, repeated or unexpected decisions"]


def test_a_report_without_any_measurement_still_stands(tmp_path: Path) -> None:
    written = write_report(sample_report([FAILED]), tmp_path, "bench")
    assert len(written) == 2
    assert "<svg" not in written[0].read_text()


def test_a_report_that_cannot_be_written_is_explained(tmp_path: Path) -> None:
    (tmp_path / "bench-report.html").mkdir()
    with pytest.raises(FraudFilterError, match="the report can't be written"):
        write_report(sample_report(), tmp_path, "bench")


@pytest.mark.parametrize("columns", [BENCH, DEMO])
def test_the_table_cuts_nothing_and_the_demo_s_fits_80_characters(columns: tuple[str, ...]) -> None:
    width, starts = (80, sample_starts()[:3]) if columns is DEMO else (180, sample_starts())  # a demo is one round
    console = Console(width=width, file=StringIO())
    console.print(result_table(report_data(sample_report(starts))["results"], columns))
    assert isinstance(console.file, StringIO)
    shown = console.file.getvalue()
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= width
    assert "micro-batch" in shown


def test_a_start_that_ended_is_a_line_for_each_rate_and_one_for_its_error() -> None:
    due = {"p50_ms": 2.346, "p99_ms": 5.75}
    kept = RateResult(100.0, 99.7, due=due, audit=Audited(0, 3, 0), payments=200, decisions=100)
    behind = RateResult(5000.0, due=due, audit=Audited(0, 0, 0), lag=9000, decided_share=0.71, stolen_share=0.2)
    start = StartResult("streams", 2, (kept, RateResult(1000.0), behind), error="it ended with exit code 4")
    assert describe_start(start) == [
        "round 2, streams, 100/s: p50 2.35 ms, p99 5.75 ms, 0 lost, 3 duplicated, 0 unexpected",
        "round 2, streams, 1000/s: p50 ? ms, p99 ? ms, ? lost, ? duplicated, ? unexpected".replace("?", NOT_MEASURED),
        "round 2, streams, 5000/s: p50 2.35 ms, p99 5.75 ms, 0 lost, 0 duplicated, 0 unexpected; behind: 71.0% of "
        "what was due was decided meanwhile, 9000 came after the end",
        "round 2, streams: others took 20% of the processor time, so this round says little",
        "round 2, streams: it ended with exit code 4",
    ]


def test_what_the_rules_find_is_told_where_it_was_labelled() -> None:
    assert detection_table([{"mode": "streams", "detection": None}]) is None
    table = detection_table([{"mode": "x", "detection": {"velocity": {"precision": None, "recall": 0.93}}}])
    assert table is not None
    assert [list(column.cells) for column in table.columns] == [["x"], ["velocity"], ["-"], ["93%"]]
