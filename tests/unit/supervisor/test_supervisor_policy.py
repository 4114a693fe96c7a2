"""How long the program waits before it starts the query again, and when it gives up."""

from __future__ import annotations

import pytest

from fraud_filter import config
from fraud_filter.errors import EXIT_GAVE_UP
from fraud_filter.supervisor.failures import GaveUpError, RestartableError
from fraud_filter.supervisor.policy import Policy


def policy(**changes: float) -> Policy:
    return Policy(config.load({"restart_backoff_s": 8, "max_restarts": 3} | changes))


def back_off(tried: Policy, *, has_progressed: bool = False, cause: str = "it failed") -> float:
    return tried.back_off(RestartableError("query-failed", cause), has_progressed=has_progressed)


def test_back_offs_double_with_jitter_up_to_the_limit() -> None:
    tried = policy(max_restarts=2000)
    for least in (8, 16, 30, 30, 30):
        assert least <= back_off(tried) <= min(30, least + 4)
    assert tried.failures == 5
    tried.failures = 1999
    assert back_off(tried) == 30
    assert back_off(policy(restart_backoff_s=60)) == 60  # the first one is the longest


def test_it_gives_up_after_max_restarts_and_tells_the_last_reason() -> None:
    tried = policy()
    for _ in range(3):
        back_off(tried)
    with pytest.raises(GaveUpError, match=r"after 3 restarts in a row without progress.*; the last: end 3") as gave_up:
        back_off(tried, cause="end 3")
    assert gave_up.value.exit_code == EXIT_GAVE_UP == 4


def test_progress_lets_the_count_begin_anew() -> None:
    tried, counts = policy(), []
    for has_progressed in (False, False, True, False, False, True, False, False):
        back_off(tried, has_progressed=has_progressed)
        counts.append(tried.failures)
    assert counts == [1, 2, 1, 2, 3, 1, 2, 3]


def test_no_restart_when_none_is_wanted() -> None:
    with pytest.raises(GaveUpError):
        back_off(policy(max_restarts=0), has_progressed=True)
