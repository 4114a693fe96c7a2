"""Percentiles of whole milliseconds: what is known of the true latencies comes out again."""

from __future__ import annotations

import random
import statistics

import pytest

from lab.bench.percentiles import counted, grouped_percentile, summarise


def stamped(latencies_ms: list[float], seed: int = 1) -> dict[int, int]:
    """What Kafka's stamps make of latencies that begin anywhere within a millisecond."""
    draw = random.Random(seed)
    starts = [draw.random() * 1000 for _ in latencies_ms]
    return counted([int(start + latency) - int(start) for start, latency in zip(starts, latencies_ms, strict=True)])


@pytest.mark.parametrize("latency_ms", [0.8, 1.5, 2.0, 2.3, 2.9, 7.75])
def test_a_constant_latency_is_found_to_a_fraction_of_a_millisecond(latency_ms: float) -> None:
    counts = stamped([latency_ms] * 20_000)
    assert grouped_percentile(counts, 50) == pytest.approx(latency_ms, abs=0.25)


def test_spread_latencies_have_an_exact_median_and_a_tail_that_is_little_too_long() -> None:
    draw = random.Random(2)
    true = [2.3 * draw.lognormvariate(0, 0.4) for _ in range(50_000)]
    counts = stamped(true)
    assert grouped_percentile(counts, 50) == pytest.approx(statistics.median(true), abs=0.05)
    assert grouped_percentile(counts, 99) == pytest.approx(statistics.quantiles(true, n=100)[98], abs=0.25)


def test_percentiles_stay_between_zero_and_the_longest() -> None:
    counts = {0: 98, 7: 2}
    figures = summarise(counts)
    assert figures["max_ms"] == 7
    assert grouped_percentile(counts, 0) == 0
    assert all(0 <= (figure or 0) <= 7 for figure in figures.values())
    assert grouped_percentile(counts, 100) == 7


def test_nothing_measured_is_none_and_not_zero() -> None:
    assert set(summarise({}).values()) == {None}
