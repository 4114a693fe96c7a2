"""Growth of counters, and what happened, told from series."""

from __future__ import annotations

import math
from collections.abc import Iterable

from fraud_filter.report.counting import covered_s, growth, total_growth
from fraud_filter.report.data import _distribution
from fraud_filter.report.events import Event, Span, find_events, find_spans
from fraud_filter.report.prometheus import Series

GAP_S = 2.5


def series(values: Iterable[float], start: float = 0, step: float = 1, **labels: str) -> Series:
    return Series(labels, tuple((start + index * step, value) for index, value in enumerate(values)))


def test_growth_is_from_the_first_to_the_last_point() -> None:
    assert growth(series([5, 5, 7, 12]).points) == 7
    assert growth(series([5]).points) == 0


def test_a_counter_that_falls_began_anew() -> None:
    assert growth(series([5, 9, 2, 3]).points) == 4 + 2 + 1


def test_what_grew_over_a_gap_can_be_left_out() -> None:
    one = Series({}, ((0, 1), (1, 3), (9, 50), (10, 51)))
    assert growth(one.points) == 50
    assert growth(one.points, GAP_S) == total_growth([one], GAP_S) == 3


def test_only_series_with_the_labels_count_and_none_is_not_zero() -> None:
    both = [series([0, 3], mode="continuous"), series([10, 14], mode="continuous"), series([0, 99], mode="real-time")]
    assert total_growth(both, math.inf, mode="continuous") == 7
    assert total_growth(both, math.inf) == 106
    assert total_growth(both, math.inf, mode="micro-batch") is None


def test_gaps_do_not_count_as_covered() -> None:
    one = series([1, 1, 1], mode="a")
    later = series([1, 1], start=10, mode="b")
    assert covered_s([one, later], GAP_S) == 3
    assert covered_s([one, later], GAP_S, mode="b") == 1
    assert covered_s([], GAP_S) == 0


def test_buckets_become_a_distribution() -> None:
    buckets = [
        series([0, 4], le="0.001", mode="a"),
        series([0, 6], le="0.02", mode="a"),
        series([1, 8], le="+Inf", mode="a"),
        series([0, 9], le="+Inf", mode="b"),
    ]
    assert _distribution(buckets, mode="a") == {0.001: 4, 0.02: 2, float("inf"): 1}


def test_modes_follow_each_other_and_the_later_one_counts_where_both_have_data() -> None:
    up = [series([1] * 6, mode="micro-batch"), series([1] * 5, start=4, mode="real-time")]
    assert find_spans(up, GAP_S) == [Span("micro-batch", 0, 4), Span("real-time", 4, 8)]


def test_a_gap_ends_a_span_and_a_failed_scrape_does_not() -> None:
    up = [Series({"mode": "continuous"}, ((0, 1), (1, 1), (3, 1), (10, 1), (11, 1)))]
    assert find_spans(up, GAP_S) == [Span("continuous", 0, 3), Span("continuous", 10, 11)]


def test_a_visit_to_another_mode_does_not_end_the_first() -> None:
    # The first mode was away for less time than a gap.
    up = [Series({"mode": "micro-batch"}, ((0, 1), (1, 1), (3, 1), (4, 1))), series([1, 1], start=2, mode="real-time")]
    found = find_spans(up, GAP_S)
    assert found == [Span("micro-batch", 0, 2), Span("real-time", 2, 3), Span("micro-batch", 3, 4)]
    told = [event.text for event in find_events(found, up, [], [], GAP_S) if event.kind == "switched"]
    assert told == ["mode switched from micro-batch to real-time", "mode switched from real-time to micro-batch"]


def test_without_data_of_the_filter_there_is_no_stretch() -> None:
    # A probe that ran alone has data all the same.
    assert find_spans([], GAP_S) == []
    assert find_events([], [], [], [], GAP_S) == []


def _told(events: list[Event]) -> list[tuple[float, str, str]]:
    return [(event.at, event.kind, event.text) for event in events]


def test_everything_that_happened_is_told_in_order() -> None:
    up = [
        Series({"mode": "micro-batch"}, ((0, 0), (1, 1), (2, 1))),
        Series({"mode": "real-time"}, ((4, 0), (5, 1), (6, 0), (7, 0), (20, 1))),
    ]
    restarts = [series([0, 0, 1, 3], start=20, mode="real-time")]
    commits = [series([4, 5, 0, 1], start=20, mode="real-time")]
    assert _told(find_events(find_spans(up, GAP_S), up, restarts, commits, GAP_S)) == [
        (1, "active", "query active"),
        (4, "switched", "mode switched from micro-batch to real-time"),
        (5, "active", "query active"),
        (6, "inactive", "query not active"),
        (20, "gap", "data again, after 13s without any"),
        (20, "active", "query active"),
        (22, "restarted", "query restarted after a failure"),
        (22, "started", "filter restarted: its counters begin at 0"),
        (23, "restarted", "query restarted 2 times after a failure"),
    ]


def test_a_quiet_time_has_no_events() -> None:
    up, counts = [series([1] * 5, mode="continuous")], [series([3] * 5, mode="continuous")]
    assert find_events(find_spans(up, GAP_S), up, counts, counts, GAP_S) == []
