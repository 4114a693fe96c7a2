"""From payments to figures: which payments count, who has fallen behind, and from where latency runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lab.bench.evaluate import evaluate
from lab.bench.readback import Payments
from lab.bench.result import RateResult
from lab.harness.sampler import Sampler

START_US = 1_790_000_000_000_000


def payments(latency_ms: Any, late_us: int = 0, count: int = 400) -> Payments:
    """One payment each 10 ms, every second one decided after `latency_ms` (a number, or one a payment)."""
    due_us = START_US + np.arange(count) * 10_000
    appended_ms = (due_us + late_us) // 1000
    decided_ms = np.where(np.arange(count) % 2 == 0, appended_ms + latency_ms, 0)
    return Payments(due_us, appended_ms, decided_ms)


def figures(of: Payments) -> RateResult:
    return evaluate(100, of, Sampler({}), settle_s=1, seconds=3)


def test_settling_is_left_out() -> None:
    latency_ms = np.where(np.arange(400) < 100, 900, 4)  # the first second is slow
    found = figures(payments(latency_ms))
    assert (found.payments, found.decisions) == (300, 150)
    assert sum(found.due_20us.values()) == 150
    assert found.append_mean_ms == 4
    assert found.due["max_ms"] == pytest.approx(5, abs=0.01)


def test_what_was_due_after_the_measured_seconds_is_left_out() -> None:
    found = figures(payments(4, count=600))
    assert found.payments == 300


def test_latency_from_the_due_time_has_what_the_payment_was_held_up() -> None:
    found = figures(payments(4, late_us=250_000))
    assert found.append_mean_ms == 4
    assert found.due["mean_ms"] == pytest.approx(254.5, abs=0.01)
    assert found.due["p50_ms"] == pytest.approx(254.5, abs=0.5)


@pytest.mark.parametrize(
    ("latency_ms", "share", "keeps_up"),
    [
        (4, 1, True),
        (5_000, 1, False),  # all is decided, but late
        (np.arange(400) // 10, 0.99, True),
        (np.arange(400) * 1, 0.909, False),  # for 11 that are due 10 are decided
        (np.arange(400) % 30 * 10, 1, True),  # in batches
        (np.where(np.arange(400) > 360, (400 - np.arange(400)) * 10, 4), 1, True),  # a pause at the end
    ],
)
def test_who_keeps_up_decides_what_is_due_in_the_same_time(latency_ms: Any, share: float, *, keeps_up: bool) -> None:
    found = figures(payments(latency_ms))
    assert found.decided_share == pytest.approx(share, abs=0.005)
    assert found.keeps_up == keeps_up


def test_the_wait_at_the_end_of_a_batch_is_the_longest_around_it() -> None:
    pausing = payments(np.where(np.arange(4000) == 1500, 350, 4), count=4000)
    ends_s = [START_US / 1e6 + second for second in (0.5, 15.1, 30, 99)]
    found = evaluate(100, pausing, Sampler({}), settle_s=1, seconds=38, ends_s=ends_s)
    assert found.batch_ends_ms == [350, 4]
    assert figures(payments(4)).batch_ends_ms == []


def test_the_kept_rate_is_that_of_the_input_topic() -> None:
    assert figures(payments(4)).kept_rate == pytest.approx(100, rel=0.01)


def test_without_decisions_nothing_is_measured() -> None:
    silent = payments(4)
    found = figures(Payments(silent.due_us, silent.appended_ms, np.zeros(400, dtype=np.int64)))
    assert found.decisions == 0
    assert {found.append_mean_ms, *found.due.values()} == {None}
    assert found.due_20us == {}
    assert found.per_1000("contender") is None


def test_a_gap_is_the_longest_time_without_a_decision() -> None:
    """Every second payment is decided, each 20 ms; those of one second wait for its end."""
    number = np.arange(400)
    held = (number >= 100) & (number < 200)
    found = figures(payments(np.where(held, (200 - number) * 10 + 4, 4)))
    assert found.gap_s == pytest.approx(1.02, abs=0.01)
    assert figures(payments(4)).gap_s == pytest.approx(0.02, abs=0.005)
