"""Two reports side by side: what differs is pointed out, what is missing is no zero."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench_sample import sample_report
from fraud_filter.errors import UsageError
from lab.bench.results.compare import Comparison, compare, load_report
from lab.bench.results.report import report_data
from lab.cli.bench_compare import command


def saved(path: Path, factor: float = 1.0) -> Path:
    data = json.loads(json.dumps(report_data(sample_report())))
    for result in data["results"]:
        result["p50_ms"] *= factor
    path.write_text(json.dumps(data))
    return path


def test_a_report_does_not_differ_from_itself(tmp_path: Path) -> None:
    report = load_report(saved(tmp_path / "a.json"))
    found = compare(report, report)
    assert len(found) == 2 + 3 * 2 * 4  # ratios; contenders, rates, figures
    assert not any(line.is_notable for line in found)
    assert {line.times for line in found} == {1.0}


def test_what_differs_by_more_than_a_fifth_is_marked(tmp_path: Path) -> None:
    one, other = load_report(saved(tmp_path / "a.json")), load_report(saved(tmp_path / "b.json", 1.3))
    notable = {line.name for line in compare(one, other) if line.is_notable}
    assert notable == {
        f"{mode} {rate}/s p50_ms" for mode in ("micro-batch", "real-time", "floor") for rate in (100, 1000)
    }


@pytest.mark.parametrize(
    ("one", "other", "is_notable"), [(10, 12, False), (12, 10, False), (10, 12.1, True), (12.1, 10, True)]
)
def test_more_and_less_are_measured_alike(one: float, other: float, is_notable: bool) -> None:
    assert Comparison("x", one, other).is_notable is is_notable


def test_a_contender_that_only_one_report_has_is_shown_and_does_not_differ(tmp_path: Path) -> None:
    one = load_report(saved(tmp_path / "a.json"))
    other = {**one, "results": [], "ratios": {}}
    found = compare(one, other)
    assert all(line.other is None and line.is_single and not line.is_notable for line in found)
    assert len(found) == 26


def test_the_command_prints_both_and_counts_what_differs(tmp_path: Path) -> None:
    files = [str(saved(tmp_path / "a.json")), str(saved(tmp_path / "b.json", 1.3))]
    done = CliRunner().invoke(command, files, standalone_mode=False)
    assert done.exception is None
    assert "real-time/floor 100/s p50" in done.output
    assert done.output.endswith("6 of 26 values differ by more than 20%\n")


def test_the_command_counts_what_one_report_alone_has(tmp_path: Path) -> None:
    one, other = saved(tmp_path / "a.json"), tmp_path / "b.json"
    report = json.loads(one.read_text())
    other.write_text(json.dumps({**report, "results": [one for one in report["results"] if one["rate"] == 100]}))
    done = CliRunner().invoke(command, [str(one), str(other)], standalone_mode=False)
    assert done.output.count("in one only") == 12
    assert done.output.endswith("0 of 14 values differ by more than 20%; 12 are in one report only\n")


def test_ratios_at_other_rates_are_other_figures(tmp_path: Path) -> None:
    one = load_report(saved(tmp_path / "a.json"))
    other = {**one, "results": [result for result in one["results"] if result["rate"] == 1000]}
    ratios = [line for line in compare(one, other) if line.name.startswith("real-time/floor")]
    assert [(line.name, line.one is None, line.other is None) for line in ratios] == [
        ("real-time/floor 100/s p50", False, True),
        ("real-time/floor 100/s p99", False, True),
        ("real-time/floor 1000/s p50", True, False),
        ("real-time/floor 1000/s p99", True, False),
    ]


def test_what_both_lack_does_not_differ() -> None:
    assert not Comparison("x", None, None).is_notable
    assert not Comparison("x", None, None).is_single
    assert not Comparison("x", 0, 0).is_notable
    assert not Comparison("x", None, 1).is_notable
    assert Comparison("x", 0, 1).is_notable


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "{}", '{"results": 1, "ratios": {}}', '{"results": [], "ratios": null}',
        '{"results": [{}], "ratios": {}}', '{"results": [1], "ratios": {}}', '{"results": [], "ratios": {"a": 1}}',
    ],
)  # fmt: skip
def test_what_is_no_report_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=r"a\.json .*make bench"):
        load_report(path)
