"""Durations of a report, and the points and rates of its window."""

from __future__ import annotations

import pytest

from fraud_filter.errors import UsageError
from fraud_filter.report.window import Window, format_duration, parse_since


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10m", 600), ("2h", 7200), ("90s", 90), ("1h30m", 5400), ("7d", 604_800), ("1w", 604_800), (" 5m ", 300)],
)
def test_durations_are_read(text: str, seconds: int) -> None:
    assert parse_since(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "10", "m", "0s", "-5m", "10 minutes", "5m1h", "1.5h", "10ms", "400d", "9" * 400 + "w"]
)
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(
        UsageError, match=r"argument --since: '.*' is not accepted: give a duration .* such as 90s, 10m"
    ):
        parse_since(text)


@pytest.mark.parametrize("text", ["10m", "1h30m", "1d", "1w1d1h1m1s"])
def test_durations_are_written_as_they_are_read(text: str) -> None:
    assert format_duration(parse_since(text)) == text


def test_durations_are_written_in_whole_seconds() -> None:
    assert [format_duration(seconds) for seconds in (0, 0.4, 59.6)] == ["0s", "0s", "1m"]


def test_a_short_window_has_a_point_a_scrape() -> None:
    window = Window(0, 600, scrape_s=5)
    assert (window.step_s, window.rate_s) == (5, 20)


def test_a_long_window_has_no_more_points_than_can_be_seen_and_misses_no_sample() -> None:
    window = Window(0, 86_400, scrape_s=5)
    assert window.step_s == window.rate_s == 360


def test_rare_scrapes_give_rare_points() -> None:
    window = Window(0, 600, scrape_s=14.6)
    assert (window.step_s, window.rate_s) == (15, 59)
