"""The table of states: it is whole, the docs have it, and the loop has work for each state and heeds a stop in each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, cast, get_args

import pytest

from fraud_filter.config import load
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.home import HOME
from fraud_filter.lock.checkpoint_lock import Lock
from fraud_filter.monitor.monitor import Monitor
from fraud_filter.supervisor.failures import REASONS, GaveUpError, RestartableError
from fraud_filter.supervisor.run import FilterRun
from fraud_filter.supervisor.signals import Stop
from fraud_filter.supervisor.states import TRANSITIONS, Event, State, next_state

PAGE = HOME / "docs/operate.md"


def test_each_event_of_a_state_leads_to_one_other_state_and_all_can_be_reached() -> None:
    assert len({(each.source, each.event) for each in TRANSITIONS}) == len(TRANSITIONS)
    assert {each.event for each in TRANSITIONS} == set(get_args(Event))
    assert {each.target for each in TRANSITIONS} == set(get_args(State))
    assert not [each for each in TRANSITIONS if each.source == "ended"]
    with pytest.raises(KeyError):
        next_state("launching", "handed-over")


def test_the_docs_have_the_table() -> None:
    rows = [f"| {each.source} | {each.event} | {each.target} | {each.meaning} |" for each in TRANSITIONS]
    table = "\n".join(["| state | event | next state | that is |", "|---|---|---|---|", *rows])
    found = re.search(r"<!-- states -->\n(.*?)\n<!-- /states -->", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    assert found[1] == table


@pytest.fixture
def filter_run() -> Iterator[FilterRun]:
    """Of a filter whose steps are scripted, so that none looks at the rules."""
    settings = load({"restart_backoff_s": 0.001, "max_restarts": 2, "metrics_port": 0})
    with closing(Monitor(settings, REASONS)) as monitor:
        yield FilterRun(settings, cast("Any", None), monitor, Stop(1), Lock())


def script(run: FilterRun, steps: dict[State, list[Event | Exception]]) -> list[State]:
    """Has states other than backing-off end as scripted; returns the states that it is in, one after the other."""
    seen: list[State] = []

    def step(state: State, real: Callable[[], Event]) -> Callable[[], Event]:
        def does() -> Event:
            seen.append(state)
            if state == "backing-off":
                return real()
            event = steps[state].pop(0)
            if isinstance(event, Exception):
                raise event
            return event

        return does

    run.steps = {state: step(state, real) for state, real in run.steps.items()}
    run.run()
    return seen


def test_there_is_work_for_each_state(filter_run: FilterRun) -> None:
    assert {*filter_run.steps, "ended"} == set(get_args(State))


def test_a_handover_ends_the_run(filter_run: FilterRun) -> None:
    seen = script(
        filter_run,
        {
            "launching": ["connected"],
            "checking": ["lock-is-held", "checked"],
            "standing-by": ["lock-taken"],
            "starting": ["started", "started"],
            "running": ["query-restarts", "handover-agreed"],
            "handing-over": ["handed-over"],
        },
    )
    assert seen == [
        "launching", "checking", "standing-by", "starting", "running", "checking", "starting", "running",
        "handing-over",
    ]  # fmt: skip


def test_what_a_start_may_cure_is_started_again_until_there_are_too_many(filter_run: FilterRun) -> None:
    ends: list[Event | Exception] = [RestartableError("java-gone", f"end {number}") for number in range(9)]
    with pytest.raises(GaveUpError, match=r"after 2 restarts in a row without progress.*; the last: end 2"):
        script(filter_run, {"launching": ends})
    assert len(ends) == 6


@pytest.mark.parametrize("error", [UsageError("bad rules"), FraudFilterError("no Java"), ZeroDivisionError()])
def test_what_no_restart_cures_ends_it_at_once(filter_run: FilterRun, error: Exception) -> None:
    ends: list[Event | Exception] = [RestartableError("java-gone", "x"), error, "connected"]
    with pytest.raises(type(error)):
        script(filter_run, {"launching": ends})
    assert ends == ["connected"]


def test_a_stop_ends_each_state(filter_run: FilterRun) -> None:
    filter_run.stop.event.set()
    assert script(filter_run, {}) == []


def test_a_failure_after_a_stop_request_is_none(filter_run: FilterRun) -> None:
    def stopped() -> Event:
        filter_run.stop.event.set()
        raise RestartableError("java-gone", "it was killed")

    filter_run.steps["launching"] = stopped
    filter_run.run()
