"""The probe's bookkeeping and its histogram, without a broker."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from fraud_filter.kafka.consumer import CLOCKS_MS
from fraud_filter.probe.tally import LIMIT_MS, LatencyHistogram, SeenOffsets, Tally
from fraud_filter.records import read_source

HEADERS = [
    ("source.topic", b"payments"),
    ("source.partition", b"1"),
    ("source.offset", b"42"),
    ("source.timestamp", b"1700000000123"),
]


def test_headers_tell_the_source() -> None:
    source = read_source(HEADERS)
    assert source is not None
    assert (source.topic, source.partition, source.offset, source.timestamp_ms) == ("payments", 1, 42, 1700000000123)
    assert source.reason == ""
    rejected = read_source([*HEADERS, ("reject.reason", b"missing-field: amount")])
    assert rejected is not None
    assert rejected.reason == "missing-field: amount"


@pytest.mark.parametrize(
    ("headers", "decision"),
    [
        ([("decision", b"approve")], "approve"),
        ([("decision", b"flag")], "flag"),
        ([("decision", b"reject"), ("reject.reason", b"malformed-json")], "reject"),
        ([], "flag"),  # as former versions wrote it
        ([("reject.reason", b"malformed-json")], "reject"),
    ],
)
def test_headers_tell_the_decision(headers: list[tuple[str, bytes]], decision: str) -> None:
    source = read_source([*HEADERS, *headers])
    assert source is not None
    assert source.decision == decision


def test_another_decision_than_the_filter_s_is_unreadable() -> None:
    assert read_source([*HEADERS, ("decision", b"maybe")]) is None


def test_a_timestamp_that_no_record_has_is_unreadable() -> None:
    assert read_source([*HEADERS, ("source.timestamp", b"9223372036854775807")]) is not None
    assert read_source([*HEADERS, ("source.timestamp", b"9223372036854775808")]) is None


@pytest.mark.parametrize("missing", range(4))
def test_a_missing_header_makes_the_source_unreadable(missing: int) -> None:
    assert read_source([header for at, header in enumerate(HEADERS) if at != missing]) is None


@pytest.mark.parametrize("bad", [b"", b"x", None, b"\xff"])
@pytest.mark.parametrize("name", ["source.partition", "source.offset", "source.timestamp"])
def test_a_bad_number_makes_the_source_unreadable(name: str, bad: bytes | None) -> None:
    assert read_source([*HEADERS, (name, bad)]) is None


def test_no_headers_at_all() -> None:
    assert read_source(None) is None
    assert read_source([]) is None


def test_a_repeated_offset_is_noticed_in_any_order() -> None:
    offsets = SeenOffsets()
    order = list(range(5_000)) * 2
    random.Random(1).shuffle(order)
    seen: set[int] = set()
    for offset in order:
        assert offsets.add(offset) == (offset in seen)
        seen.add(offset)
    assert offsets.newest == 4_999


def test_memory_of_offsets_is_bounded_and_old_places_are_free_again() -> None:
    offsets, window = SeenOffsets(), SeenOffsets.WINDOW
    assert not offsets.add(3)
    assert not offsets.add(window - 2)
    assert offsets.add(3)
    assert not offsets.add(window + 3)  # takes the place of 3
    assert offsets.add(window + 3)
    assert not offsets.add(3)  # forgotten: behind the window
    assert not offsets.add(window + 100)
    assert not offsets.add(window + 50)
    assert not offsets.add(10 * window)  # all places are free
    assert not offsets.add(10 * window - 1)
    assert offsets.add(10 * window)


def test_offsets_of_a_topic_that_was_made_anew_are_new() -> None:
    offsets, began_ms = SeenOffsets(), 1_700_000_000_000
    for offset in range(500):
        assert not offsets.add(offset, began_ms + offset)
    assert offsets.add(499, began_ms + 499)
    assert offsets.add(3, began_ms + 3)  # repeated after a restart
    later_ms = began_ms + 60_000
    for offset in range(500):
        assert not offsets.add(offset, later_ms + offset)
    assert offsets.add(7, later_ms + 7)
    assert offsets.newest == 499


def test_clocks_that_differ_a_little_make_no_topic_new() -> None:
    offsets = SeenOffsets()
    offsets.add(10, 1_000_000)
    offsets.add(9, 1_000_000 + CLOCKS_MS)
    assert offsets.add(10, 1_000_000)
    assert offsets.newest == 10


def test_a_window_without_records_has_no_latency() -> None:
    snapshot = Tally(20).snapshot(None, {})
    assert snapshot.count == 0
    assert snapshot.p50_ms is None
    assert "p50_ms" not in snapshot.to_dict()
    assert "last_seen_age_s" not in snapshot.to_dict()
    assert snapshot.to_dict()["flagged"] == 0


def test_a_window_tells_the_share_of_decisions_within_the_objective() -> None:
    tally = Tally(20)
    for latency_ms in (0, 20, 21):
        tally.record(latency_ms)
    assert tally.snapshot(None, {}).within_objective == 0.666667
    tally.reset()
    assert tally.snapshot(None, {}).within_objective is None


# -- the latency histogram against plain sorting


@pytest.mark.parametrize("longest", [20, 2_000, 200_000])
def test_percentiles_are_exact_to_the_millisecond(longest: int) -> None:
    rng = random.Random(longest)
    latencies = [int(longest * rng.random() ** 3) for _ in range(10_000)]
    histogram = LatencyHistogram()
    for latency in latencies:
        histogram.record(latency)
    in_order = sorted(latencies)
    for percentile in (1, 50, 90, 99, 99.9, 100):
        exact = in_order[max(0, math.floor(percentile * len(latencies) / 100 + 0.5) - 1)]
        assert histogram.percentile_ms(percentile) == exact
    assert histogram.max_ms == in_order[-1]
    assert histogram.distribution() == dict(sorted(Counter(latencies).items()))


def test_what_is_longer_than_the_limit_is_counted_there_and_told_by_the_maximum() -> None:
    histogram = LatencyHistogram()
    histogram.record(5 * LIMIT_MS)
    assert histogram.count == 1
    assert histogram.max_ms == 5 * LIMIT_MS
    assert list(histogram.distribution().values()) == [1]


def test_one_hour_is_told_to_16_ms() -> None:
    histogram = LatencyHistogram()
    histogram.record(LIMIT_MS - 5)
    histogram.record(LIMIT_MS)
    assert abs((histogram.percentile_ms(50) or 0) - (LIMIT_MS - 5)) <= 16
