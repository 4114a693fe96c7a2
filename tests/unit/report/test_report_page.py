"""The report's page from sample data (made up, never measured): what is in it, and what it must not need."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest

from fraud_filter.errors import UsageError
from fraud_filter.pages.numbers import NOT_MEASURED
from fraud_filter.report import figures as plots
from fraud_filter.report.data import ReportData
from fraud_filter.report.events import Event
from fraud_filter.report.figures import _density
from fraud_filter.report.page import render_page, write_page
from fraud_filter.report.prometheus import Series
from report_sample import START, curve, figures, sample_data

ALL_PLOTS = ("latency", "distribution", "rates", "lag", "since_progress", "phases")


class _Page(HTMLParser):
    """A page's text, its cells row by row, and every address that a browser would load."""

    def __init__(self, data: ReportData) -> None:
        super().__init__()
        self.text = ""
        self.loaded: list[str] = []
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self._cell = False
        self.html = render_page(data)
        self.feed(self.html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loaded += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "data")]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self._cell = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._cell = self._cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._cell:
            self.rows[-1][-1] += data.strip()


def _svg(name: str, data: ReportData) -> str:
    return str(getattr(plots, f"{name}_svg")(data))


def _texts(svg: str) -> list[str]:
    return [text.text or "" for text in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314


def test_the_page_loads_nothing() -> None:
    page = _Page(sample_data())
    assert [address for address in page.loaded if not address.startswith(("#", "data:"))] == []
    assert "script" not in page.tags
    assert "url(http" not in page.html
    assert "@import" not in page.html


def test_a_row_a_mode_and_one_of_all() -> None:
    rows = _Page(sample_data()).rows
    assert rows[1] == [
        "micro-batch", "4m50s", "402", "8.1", "691", "0 %", "100", "712", "14,321", "287", "0", "0",
    ]  # fmt: skip
    assert rows[2][:6] == ["continuous", "4m50s", "4.22", "8.1", "18", "99.9 %"]
    assert rows[2][-2:] == ["31", "0"]
    assert rows[3][0] == "all"


def test_one_mode_has_no_row_of_all() -> None:
    page = _Page(sample_data(modes=[figures("continuous")], total=figures("all")))
    assert "all" not in [row[0] for row in page.rows]
    assert "p99 is within the objective of 20 ms" in page.text


def test_a_missed_objective_is_told_with_the_share_that_met_it() -> None:
    page = _Page(sample_data(modes=[figures("continuous", p99_ms=20.1, within=0.98999)]))
    assert "p99 is beyond the objective of 20 ms: 98.9 % of the decisions are within it" in page.text


def test_without_a_known_objective_there_is_no_verdict() -> None:
    page = _Page(sample_data(modes=[figures("continuous", within=None, objective_ms=None)]))
    assert "the objective of" not in page.text


def test_every_plot_is_on_the_page_and_events_are_listed() -> None:
    page = _Page(sample_data())
    assert page.tags.count("svg") == len(ALL_PLOTS)
    assert ["1", "2026-09-21 14:18:20", "mode switched from micro-batch to continuous"] in page.rows


def test_what_is_not_there_is_said_instead_of_drawn() -> None:
    nothing: dict[str, object] = {
        "latency_s": {},
        "distributions": {},
        "rates": {},
        "lags": {},
        "phases_s": {},
        "since_progress_s": None,
    }
    unknown = dict.fromkeys(("p50_ms", "p95_ms", "p99_ms", "within", "rate", "lag"))
    page = _Page(
        sample_data(**nothing, modes=[figures("continuous", **unknown)], total=figures("all", **unknown), events=[])
    )
    assert "svg" not in page.tags
    assert page.rows[1][2:8] == [NOT_MEASURED] * 6
    for said in (
        "No decision was measured", "There is no latency", "There are no rates", "There is no lag",
        "Nothing was committed", "works in micro-batches", "No change of mode",
    ):  # fmt: skip
        assert said in page.text


def test_names_from_outside_are_escaped() -> None:
    evil = "<script>alert(1)</script>"
    page = _Page(
        sample_data(
            query=evil,
            modes=[figures(evil)],
            lags={evil: curve(lambda _: 3)},
            distributions={evil: {0.001: 1}},
            phases_s={evil: curve(lambda _: 1)},
            events=[Event(START, "switched", evil)],
        )
    )
    assert "script" not in page.tags
    assert evil in page.text


@pytest.mark.parametrize("name", ALL_PLOTS)
def test_plots_are_drawn_the_same_from_the_same_data(name: str) -> None:
    assert _svg(name, sample_data()) == _svg(name, sample_data())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "latency",
            [
                "p50  4 ms",
                "p95  6 ms",
                "p99  8.4 ms",
                "objective 20 ms",
                "objective 1 s",
                "micro-batch",
                "continuous",
                "1",
            ],
        ),
        ("distribution", ["objective 20 ms", "decisions per doubling", "10 ms"]),
        ("rates", ["input  105/s", "flagged  5/s", "rejected  0.1/s"]),
        ("lag", ["partition 0  40", "partition 1  80"]),
        ("since_progress", ["age  0.5 s"]),
        ("phases", ["queryPlanning  50 ms", "walCommit  80 ms", "addBatch  200 ms"]),
    ],
)
def test_plots_name_what_they_show(name: str, expected: list[str]) -> None:
    texts = _texts(_svg(name, sample_data()))
    assert [text for text in expected if text not in texts] == [], texts


def test_a_curve_has_a_gap_where_there_is_no_data() -> None:
    def pieces(series: Series) -> int:
        svg = _svg("since_progress", sample_data(since_progress_s=series, events=[], spans=[]))
        (line,) = re.findall(r'<path d="([^"]*)"[^>]*style="[^"]*series-1', svg)
        return str(line).count("M")

    whole = curve(lambda second: second + 1)
    assert pieces(whole) == 1
    assert pieces(Series({}, tuple(point for point in whole.points if not 200 < point[0] - START < 300))) == 2


def test_many_partitions_leave_the_largest_lags() -> None:
    lags = {str(number): curve(lambda _, n=number: 10.0 * n) for number in range(12)}  # type: ignore[misc]
    shown = [text for text in _texts(_svg("lag", sample_data(lags=lags))) if text.startswith("partition")]
    assert len(shown) == 8
    assert "partition 11  110" in shown
    assert "partition 3  30" not in shown


def test_areas_of_the_distribution_are_shares() -> None:
    limits, heights = _density({0.001: 2, 0.002: 0, 0.004: 6, 60.0: 0, math.inf: 0})
    assert limits == [0.5, 1, 2, 4]
    assert heights == [0.25, 0, 0.75]
    limits, heights = _density({60.0: 0, math.inf: 5})
    assert (limits, heights) == ([60_000, 120_000], [1])


def test_the_page_is_written(tmp_path: Path) -> None:
    write_page(sample_data(), tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_a_page_that_can_not_be_written_is_explained(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"argument --output: .* can't be written: Is a directory; name another file"):
        write_page(sample_data(), tmp_path)
