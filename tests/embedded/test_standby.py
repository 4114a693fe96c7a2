"""A standby beside a running filter: it warms up, says what differs, and goes on where the other one ends."""

from __future__ import annotations

import signal
from contextlib import closing

import psutil
import pytest

from faults import Decisions, events, java_of, kill_all, metrics
from filter_under_load import Run, settings_of, standby_of
from fraud_filter.audit.run import audit
from running import Stage, wait_until

pytestmark = pytest.mark.timed
#: On a busy machine a start of Spark takes a minute and more.
_START_S = 240


@pytest.mark.timeout(600)
def test_a_standby_says_what_differs_and_goes_on_where_a_killed_filter_ended(stage: Stage) -> None:
    """In real-time mode `test_trials` kills it, with the state of cards."""
    with Run(stage, "continuous") as run:
        run.await_fresh("the start", _START_S)
        with standby_of(run, **{**settings_of(run), "linger_ms": "1"}) as (standby, port):
            wait_until(lambda: bool(events(standby, "standby_differs")), "it has compared", standby)
            assert events(standby, "standby_differs")[0].endswith(" differs_in=linger_ms")
            page = metrics(port)
            assert (page["fraud_filter_state/standby"], page["fraud_filter_up"]) == (1, 0)
            assert page["fraud_filter_standby_differs"] == 1
            assert not list(stage.directory.glob("checkpoint/fraud-filter/warm-up-*"))
            java = java_of(standby).pid
            with closing(Decisions(stage)) as decisions:
                kill_all(run.program)
                ends = decisions.ends()
                wait_until(lambda: decisions.fresh(ends), "fresh decisions after the kill", standby, _START_S)
            assert java_of(standby).pid == java
            page = metrics(port)
            assert (page["fraud_filter_state/running"], page["fraud_filter_takeovers_total"]) == (1, 1)
            run.drain(standby)
        result = audit(stage.settings())
        assert result.expected
        assert (result.lost, result.unexpected) == (0, 0), result


def offsets(port: int) -> list[str]:
    """What a filter tells of the input's partitions."""
    return [name for name in metrics(port) if name.startswith(("fraud_filter_latest_offset", "fraud_filter_consumer"))]


@pytest.mark.timeout(600)
def test_of_a_pair_the_one_whose_java_dies_becomes_the_standby_and_comes_back_when_told_to(stage: Stage) -> None:
    with Run(stage, "continuous") as run:
        run.program.stop()
        run.program._argv.append("--standby")
        run.program.start()
        run.await_fresh("the start", _START_S)
        assert not events(run.program, "taking_over")
        with standby_of(run, **settings_of(run)) as (standby, port):
            java = java_of(standby).pid
            java_of(run.program).kill()
            wait_until(lambda: bool(events(standby, "taking_over")), "it takes over", standby, _START_S)
            run.await_fresh("kill -9 of Java", _START_S)
            assert metrics(port)["fraud_filter_takeovers_total"] == 1
            waits = lambda: bool(events(run.program, "standby_ready"))  # noqa: E731
            wait_until(waits, "the former one waits", run.program, _START_S)
            wait_until(lambda: not offsets(run.port), "it tells of no offsets", run.program)
            assert offsets(port), "the active one does"
            psutil.Process(standby.pid).send_signal(signal.SIGUSR1)  # who does not wait asks for nothing
            psutil.Process(run.program.pid).send_signal(signal.SIGUSR1)
            wait_until(lambda: bool(events(run.program, "taking_over")), "it comes back", run.program)
            assert [line.partition("at=")[2].split()[0] for line in events(run.program, "asking_for_handover")] == [
                "commit"
            ]
            run.await_fresh("the way back", _START_S)
            assert not events(standby, "asking_for_handover")
            assert java_of(standby).pid == java
            wait_until(lambda: len(events(standby, "standby_ready")) == 2, "it waits again", standby, _START_S)
            psutil.Process(standby.pid).send_signal(signal.SIGUSR1)
            wait_until(lambda: len(events(standby, "taking_over")) == 2, "it works again", standby)
            run.await_fresh("the second time in the same Java", _START_S)
            assert java_of(standby).pid == java
            assert standby.stop(40) == 0, standby.tail()
            run.await_fresh("a clean stop of the other", _START_S)
        run.end()
