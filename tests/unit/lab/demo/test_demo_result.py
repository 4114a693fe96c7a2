"""Statistics over distributions of whole milliseconds, checked against hand-made ones."""

from __future__ import annotations

import pytest

from demo_sample import sample_result
from fraud_filter.metrics.latency import Second
from lab.demo.result import quantile, second_between, share_within
from lab.harness.outcome import Audited


@pytest.mark.parametrize(("q", "expected"), [(0, 1), (0.5, 1), (0.51, 4), (0.9, 4), (0.91, 30), (0.999, 30), (1, 30)])
def test_a_quantile_is_the_smallest_latency_that_the_share_does_not_exceed(q: float, expected: int) -> None:
    assert quantile({30: 1, 1: 5, 4: 4}, q) == expected


def test_nothing_measured_has_no_statistics() -> None:
    assert quantile({}, 0.5) is None
    assert share_within({}, 20) is None


def test_the_limit_itself_is_within_the_limit() -> None:
    assert share_within({19: 1, 20: 1, 21: 2}, 20) == 0.5


def test_a_second_holds_only_what_it_added() -> None:
    before = {2: 10, 90: 1}
    after = {2: 10, 3: 3, 5: 1, 90: 1}
    assert second_between(4, before, after) == Second(second=4, decisions=4, p50_ms=3, max_ms=5)
    assert second_between(5, after, after) == Second(second=5, decisions=0, p50_ms=None, max_ms=None)


def test_a_mode_passes_only_with_a_clean_audit() -> None:
    assert sample_result("continuous").ok
    assert sample_result("continuous", audit=Audited(0, 4, 0)).ok  # at-least-once: allowed, and reported
    assert not sample_result("continuous", audit=Audited(1, 0, 0)).ok
    assert not sample_result("continuous", audit=Audited(0, 0, 1)).ok
    assert not sample_result("continuous", audit=Audited()).ok
    assert not sample_result("continuous", error="the filter ended").ok
