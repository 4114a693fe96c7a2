"""Percentiles and intervals: what is known of made-up latencies and rounds comes out again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lab.bench.statistics import (
    ENOUGH_FOR_P999,
    PAR,
    PERCENTILES,
    Estimate,
    count_latencies,
    over_rounds,
    percentiles,
    summarise,
    together,
    verdict,
)

Draw = Callable[[np.random.Generator, int], Any]


def spread(median_ms: float, p99_ms: float) -> Draw:
    """A log-normal distribution with that median and 99th percentile."""
    sigma = np.log(p99_ms / median_ms) / 2.3263
    return lambda draw, count: median_ms * draw.lognormal(0, sigma, count)


def two_ways(share: float, low_ms: float, high_ms: float) -> Draw:
    """A share of the latencies is around one value, the others around another."""
    return lambda draw, count: np.where(
        draw.random(count) < share, draw.normal(low_ms, 0.05, count), draw.normal(high_ms, 0.08, count)
    )


def seen(latencies_ms: Any, between_us: int = 1003) -> dict[int, int]:
    """What due times and Kafka's stamps leave of latencies: the payments are due at a drifting point of the second."""
    due_us = 1_790_000_000_000_000 + np.arange(len(latencies_ms)) * between_us
    return count_latencies(due_us, (due_us + latencies_ms * 1000).astype(np.int64) // 1000)


@pytest.mark.parametrize(
    "drawn",
    [
        pytest.param(spread(0.42, 2.9), id="below a millisecond"),
        pytest.param(spread(0.49, 2.3), id="a little more"),
        pytest.param(spread(5, 20), id="some milliseconds"),
        pytest.param(spread(150, 380), id="micro-batches"),
        pytest.param(lambda _, count: np.full(count, 0.42), id="constant"),
        pytest.param(lambda draw, count: draw.normal(1.0, 0.1, count), id="about a millisecond"),
        pytest.param(lambda draw, count: 0.25 + draw.exponential(0.2, count), id="exponential"),
        pytest.param(two_ways(0.6, 0.3, 1.3), id="two ways, below and above"),
        pytest.param(two_ways(0.4, 1.3, 7.3), id="two ways, above"),
    ],
)
def test_known_distributions_are_found_again(drawn: Draw) -> None:
    """In 20 starts of 5,000 decisions each: without bias, and how far a single start is off."""
    draw = np.random.default_rng(7)
    off = []
    for _ in range(20):
        true = drawn(draw, 5000)
        found = summarise(seen(true))
        p50, p99 = np.quantile(true, (0.5, 0.99))
        off.append([(found["p50_ms"] or 0) - p50, (found["p99_ms"] or 0) - p99, (found["mean_ms"] or 0) - true.mean()])
        assert found["max_ms"] == pytest.approx(true.max() + 0.5, abs=0.52)
    bias, scatter = np.mean(off, axis=0), np.sqrt(np.mean(np.square(off), axis=0))
    assert np.all(np.abs(bias) < (max(0.02, 0.004 * p50), max(0.05, 0.01 * p99), 0.01)), bias
    assert np.all(scatter < (max(0.06, 0.01 * p50), max(0.05, 0.08 * p99), 0.02)), scatter


def test_payments_that_are_due_at_the_same_point_of_each_millisecond_are_known_to_the_millisecond() -> None:
    found = summarise(seen(np.full(5000, 0.42), between_us=10_000))
    assert 0 < (found["p50_ms"] or 0) < 1


def test_percentiles_rise_and_none_is_below_zero_or_above_the_maximum() -> None:
    counts = {-49: 6, 0: 80, 350: 20}
    found = percentiles(counts, [0, 0.2, 0.5, 0.9, 0.99, 1])
    assert found == sorted(found)
    assert found[0] >= 0
    assert found[-1] <= (summarise(counts)["max_ms"] or 0)


def test_a_clock_that_goes_back_makes_no_latency_negative() -> None:
    assert summarise(count_latencies(np.array([5_000_000]), np.array([4_000])))["p50_ms"] == pytest.approx(0.01)


def test_the_rarest_latencies_are_told_of_enough_decisions_alone() -> None:
    true = spread(0.5, 3)(np.random.default_rng(1), ENOUGH_FOR_P999)
    whole = seen(true)
    assert summarise(seen(true[:-1]))["p999_ms"] is None
    assert summarise(whole)["p999_ms"] == pytest.approx(np.quantile(true, 0.999), rel=0.05)
    assert summarise(together([seen(true[:100]), seen(true[100:])]))["p999_ms"] is not None


def test_nothing_measured_is_none_and_not_zero() -> None:
    assert set(summarise({}).values()) == {None}
    assert summarise({}).keys() == {"mean_ms", *PERCENTILES, "p999_ms", "max_ms"}
    assert over_rounds([None, 0]) is None


@pytest.mark.parametrize("rounds", [3, 5, 10])
def test_an_interval_holds_the_true_ratio_in_95_of_100_cases(rounds: int) -> None:
    """Also with the few rounds that a bench has."""
    draw = np.random.default_rng(rounds)
    estimates = [over_rounds(draw.lognormal(np.log(1.3), 0.25, rounds)) for _ in range(2000)]
    held = [one for one in estimates if one and one.low and one.high and one.low < 1.3 < one.high]
    assert len(held) / len(estimates) == pytest.approx(0.95, abs=0.015)


def test_a_ratio_is_the_geometric_mean_of_the_rounds() -> None:
    found = over_rounds([2.0, None, 0.5, 1.0])
    assert found
    assert found.figure == 1.0
    assert found.low == pytest.approx(0.1787, rel=1e-3)
    assert found.high == pytest.approx(5.596, rel=1e-3)
    assert over_rounds([1.5, None]) == Estimate(1.5)
    assert over_rounds([1.0, 4.0]) == Estimate(2.0)
    assert over_rounds([1.5] * 40) == Estimate(1.5, 1.5, 1.5)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.5, 0.99, "faster"),
        (1.01, 2.0, "slower"),
        (*PAR, "on a par"),
        (0.85, 0.95, "on a par"),
        (0.79, 1.1, "not told apart"),
        (0.9, 1.26, "not told apart"),
        (0.5, 1.0, "not told apart"),
        (None, None, "not told apart"),
    ],
)
def test_the_words_are_those_of_the_interval(low: float | None, high: float | None, words: str) -> None:
    assert verdict(Estimate(1.0, low, high)) == words
