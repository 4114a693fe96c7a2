"""The latency histogram against plain sorting."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from fraud_filter.probe.tally import LIMIT_MS, LatencyHistogram


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
