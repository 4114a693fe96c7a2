"""When a query is started again, after how long, and when the program gives up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from fraud_filter import config
from fraud_filter.config import Settings
from fraud_filter.errors import EXIT_GAVE_UP, FraudFilterError, UsageError
from fraud_filter.supervisor import policy
from fraud_filter.supervisor.failures import GaveUpError, RestartableError
from fraud_filter.supervisor.policy import Policy


class Query:
    """Lives that end as scripted; the last one ends because somebody stopped it."""

    def __init__(self, *ends: FraudFilterError | None, fresh: tuple[int, ...] = ()) -> None:
        self.ends, self.fresh_lives = ends, fresh
        self.lives: list[int] = []
        self.waits: list[tuple[int, float]] = []

    def attempt(self, number: int) -> None:
        self.lives.append(number)
        end = self.ends[number]
        if end:
            raise end

    def fresh(self) -> bool:
        return self.lives[-1] in self.fresh_lives

    def announce(self, error: RestartableError, attempt: int, seconds: float) -> None:  # noqa: ARG002
        self.waits.append((attempt, seconds))

    def run(self, settings: Settings, stop: threading.Event | None = None) -> Query:
        Policy(settings, self.attempt, self.fresh, self.announce).run(stop or threading.Event())
        return self


def failure(reason: str = "it failed") -> RestartableError:
    return RestartableError("query-failed", reason)


@pytest.fixture
def settings() -> Callable[..., Settings]:
    def make(**changes: float) -> Settings:
        return config.load({"restart_backoff_s": 0.001, "max_restarts": 3} | changes)

    return make


def test_back_offs_double_with_jitter_up_to_the_limit(
    settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "_LONGEST_S", 0.05)
    query = Query(*[failure()] * 5, None).run(settings(max_restarts=5, restart_backoff_s=0.01))
    assert query.lives == [0, 1, 2, 3, 4, 5]
    assert [attempt for attempt, _ in query.waits] == [1, 2, 3, 4, 5]
    for (_, wait), least in zip(query.waits, (0.01, 0.02, 0.04, 0.05, 0.05), strict=True):
        assert least <= wait <= min(0.05, least + 0.005)


def test_it_gives_up_after_max_restarts_and_tells_the_last_reason(settings: Callable[..., Settings]) -> None:
    query = Query(*[failure(f"end {number}") for number in range(9)])
    with pytest.raises(GaveUpError, match=r"after 3 restarts in a row without progress.*; the last: end 3") as gave_up:
        query.run(settings())
    assert query.lives == [0, 1, 2, 3]
    assert gave_up.value.exit_code == EXIT_GAVE_UP == 4


def test_progress_lets_the_count_begin_anew(settings: Callable[..., Settings]) -> None:
    query = Query(*[failure()] * 9, fresh=(2, 5))
    with pytest.raises(GaveUpError):
        query.run(settings())
    assert query.lives == list(range(9))
    assert [attempt for attempt, _ in query.waits] == [1, 2, 1, 2, 3, 1, 2, 3]


def test_no_restart_when_none_is_wanted(settings: Callable[..., Settings]) -> None:
    query = Query(failure())
    with pytest.raises(GaveUpError):
        query.run(settings(max_restarts=0))
    assert query.lives == [0]


@pytest.mark.parametrize("error", [UsageError("bad rules"), FraudFilterError("no Java")])
def test_what_no_restart_cures_ends_it_at_once(settings: Callable[..., Settings], error: FraudFilterError) -> None:
    query = Query(failure(), error)
    with pytest.raises(type(error), match=str(error)):
        query.run(settings())
    assert query.lives == [0, 1]


def test_a_defect_keeps_its_stack_trace(settings: Callable[..., Settings]) -> None:
    def attempt(_: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Policy(settings(), attempt, lambda: False, lambda *_: None).run(threading.Event())


def test_a_stop_ends_a_back_off_at_once(settings: Callable[..., Settings]) -> None:
    stop = threading.Event()
    query = Query(failure())
    threading.Timer(0.1, stop.set).start()
    began = time.monotonic()
    query.run(settings(restart_backoff_s=60), stop)
    assert time.monotonic() - began < 5
    assert query.lives == [0]


def test_a_stop_during_the_last_life_is_no_giving_up(settings: Callable[..., Settings]) -> None:
    stop = threading.Event()
    stop.set()
    query = Query(failure()).run(settings(max_restarts=0), stop)
    assert query.lives == []
