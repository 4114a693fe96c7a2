"""The report from sample results (made up, never measured): what is in it, and what it must not need."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from demo_sample import failed, sample_plan, sample_result, sample_results
from lab.bench.names import MODE_NAMES
from lab.bench.results.table import rounded
from lab.demo.report import DemoReport, render_html, report_data, write_report
from lab.demo.result import share_within
from lab.harness.machine import describe_machine, describe_versions
from lab.harness.outcome import Audited

FAILED = failed("the filter ended with exit code 1\n  <script>alert(1)</script>")


def sample_report(output: Path = Path(), **changes: object) -> DemoReport:
    report = DemoReport(
        plan=sample_plan(output),
        results=sample_results(),
        versions=describe_versions(kafka="4.1.1", java="17.0.15"),
        machine=describe_machine(),
        settings={"rate": 100, "warmup_s": 12, "real_time_duration": "5 minutes"},
        took_s=251.26,
    )
    return replace(report, **changes)  # type: ignore[arg-type]


class _Page(HTMLParser):
    """Collects a page's text and every address that a browser would load."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.loaded: list[str] = []
        self.tags: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        addresses = ("src", "href", "xlink:href", "data")
        self.loaded += [value or "" for name, value in attrs if name in addresses]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_json_holds_every_figure_of_every_mode() -> None:
    data = json.loads(json.dumps(report_data(sample_report())))
    assert list(data["modes"]) == list(MODE_NAMES)
    for mode in data["modes"].values():
        assert mode.keys() >= {
            "p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms", "measured", "flagged", "lost",
            "duplicated", "unexpected", "rejected", "rate_kept", "backlog", "engine_guarantee",
            "delivery_guarantee", "timeline", "first_output_s", "ok",
        }  # fmt: skip
        assert "error" not in mode
        assert sum(mode["distribution"].values()) == mode["measured"] == 1500
        assert len(mode["timeline"]) == 30
    assert data["versions"].keys() == {"python", "spark", "kafka", "java", "fraud_filter"}
    assert data["machine"].keys() == {"cores", "memory_gib", "os", "cpu"}
    assert data["settings"]["warmup_s"] == 12
    assert data["ok"] is True
    assert data["took_s"] == 251.3


def test_what_was_not_measured_is_null_and_the_failure_has_its_reason() -> None:
    data = report_data(sample_report(results=[FAILED]))
    assert data["modes"]["continuous"]["p50_ms"] is None
    assert data["modes"]["continuous"]["lost"] is None
    assert data["modes"]["continuous"]["error"].startswith("the filter ended")
    assert data["ok"] is False


def test_the_page_loads_nothing() -> None:
    html = render_html(sample_report())
    page = _Page(html)
    assert [address for address in page.loaded if not address.startswith(("#", "data:"))] == []
    assert "script" not in page.tags
    assert "url(http" not in html
    assert "@import" not in html


def test_the_page_shows_figures_plots_and_method() -> None:
    report = sample_report()
    page = _Page(render_html(report))
    fastest = report_data(report)["modes"]["real-time"]["p50_ms"]
    assert page.tags.count("svg") == 2
    for expected in (
        "Audit passed", "LogAppendTime", "Warm-up is left out", "99.9 %", "objective 20 ms", "exactly-once",
        "warmup (s)", "memory (GiB)", "4.1.1", "17.0.15", f"{rounded(fastest)} ms", *MODE_NAMES,
    ):  # fmt: skip
        assert expected in page.text


def test_the_page_says_what_failed_and_escapes_it() -> None:
    lossy = sample_result("micro-batch", audit=Audited(3, 0, 0))
    html = render_html(sample_report(results=[lossy, FAILED]))
    page = _Page(html)
    assert "micro-batch: the audit found 3 lost and 0 unexpected payments" in page.text
    assert "continuous: the filter ended with exit code 1" in page.text
    assert "<script>" not in html
    assert "Audit passed" not in html


def test_a_report_without_any_measurement_still_stands() -> None:
    page = _Page(render_html(sample_report(results=[FAILED])))
    assert "svg" not in page.tags
    assert "continuous failed." in page.text


def test_percent_within_the_objective_is_never_rounded_up() -> None:
    latencies = [1] * 9997 + [21] * 3
    page = _Page(render_html(sample_report(results=[sample_result("real-time", latencies)])))
    assert "99.9 % within 20 ms" in page.text


def test_the_limit_itself_is_within_the_limit() -> None:
    assert share_within({19: 1, 20: 1, 21: 2}, 20) == 0.5
    assert share_within({}, 20) is None


def test_a_mode_passes_only_with_a_clean_audit() -> None:
    assert sample_result("continuous").ok
    assert sample_result("continuous", audit=Audited(0, 4, 0)).ok  # at-least-once: allowed, and reported
    for audit in (Audited(1, 0, 0), Audited(0, 0, 1), Audited()):
        assert not sample_result("continuous", audit=audit).ok
    assert not failed("the filter ended").ok


def test_all_files_are_written(tmp_path: Path) -> None:
    written = write_report(sample_report(tmp_path), tmp_path / "plot.png")
    assert [path.name for path in written] == ["demo-report.html", "demo-report.json", "plot.png"]
    assert json.loads(written[1].read_text())["modes"]["real-time"]["lost"] == 0
    width, height = struct.unpack(">II", written[2].read_bytes()[16:24])
    assert width > 1600
    assert height > 800


def test_nothing_measured_has_no_plot(tmp_path: Path) -> None:
    written = write_report(sample_report(tmp_path, results=[FAILED]), tmp_path / "none.png")
    assert [path.name for path in written] == ["demo-report.html", "demo-report.json"]


def test_plots_of_few_records_and_zero_latencies_are_drawn() -> None:
    assert "<svg" in render_html(sample_report(results=[sample_result("real-time", [0])]))


def test_the_same_results_give_the_same_page() -> None:
    report = sample_report()
    assert render_html(report) == render_html(report)
