"""A standby beside a running filter: it warms up, says what differs, goes on where the other ends, and gives back."""

from __future__ import annotations

import signal

import psutil
import pytest

from faults import events, java_of, metrics
from filter_under_load import Run, settings_of, standby_of
from lab.harness.processes import Child
from running import START_S, Stage, wait_until

pytestmark = pytest.mark.timed


def offsets(port: int) -> list[str]:
    """What a filter tells of the input's partitions."""
    return [name for name in metrics(port) if name.startswith(("fraud_filter_latest_offset", "fraud_filter_consumer"))]


def require_that_it_waits_and_says_what_differs(standby: Child, port: int) -> None:
    wait_until(lambda: bool(events(standby, "standby_differs")), "it has compared", standby)
    assert events(standby, "standby_differs")[0].endswith(" differs_in=linger_ms")
    wait_until(lambda: metrics(port)["fraud_filter_standby_differs"] == 1, "its metrics say so", standby)
    page = metrics(port)
    assert (page["fraud_filter_state/standby"], page["fraud_filter_up"]) == (1, 0)


@pytest.mark.timeout(600)
def test_of_a_pair_the_one_whose_java_dies_becomes_the_standby_and_comes_back_when_told_to(stage: Stage) -> None:
    """In real-time mode `test_trials` kills it, with the state of cards."""
    with Run(stage, "continuous") as run:
        run.program.stop()
        run.program._argv.append("--standby")
        run.program.start()
        run.await_fresh("the start", START_S)
        assert not events(run.program, "taking_over")
        with standby_of(run, **{**settings_of(run), "linger_ms": "1"}) as (standby, port):
            require_that_it_waits_and_says_what_differs(standby, port)
            assert not list(stage.directory.glob("checkpoint/fraud-filter/warm-up-*"))
            java = java_of(standby).pid
            java_of(run.program).kill()
            wait_until(lambda: bool(events(standby, "taking_over")), "it takes over", standby, START_S)
            run.await_fresh("kill -9 of Java", START_S)
            wait_until(lambda: metrics(port)["fraud_filter_state/running"] == 1, "it says that it runs", standby)
            assert metrics(port)["fraud_filter_takeovers_total"] == 1
            waits = lambda: bool(events(run.program, "standby_ready"))  # noqa: E731
            wait_until(waits, "the former one waits", run.program, START_S)
            wait_until(lambda: not offsets(run.port), "it tells of no offsets", run.program)
            assert offsets(port), "the active one does"
            psutil.Process(standby.pid).send_signal(signal.SIGUSR1)  # who does not wait asks for nothing
            psutil.Process(run.program.pid).send_signal(signal.SIGUSR1)
            wait_until(lambda: bool(events(run.program, "taking_over")), "it comes back", run.program)
            assert [line.partition("at=")[2].split()[0] for line in events(run.program, "asking_for_handover")] == [
                "commit"
            ]
            run.await_fresh("the way back", START_S)
            assert not events(standby, "asking_for_handover")
            assert java_of(standby).pid == java
            wait_until(lambda: len(events(standby, "standby_ready")) == 2, "it waits again", standby, START_S)
            psutil.Process(standby.pid).send_signal(signal.SIGUSR1)
            wait_until(lambda: len(events(standby, "taking_over")) == 2, "it works again", standby)
            run.await_fresh("the second time in the same Java", START_S)
            assert java_of(standby).pid == java
            assert standby.stop(40) == 0, standby.tail()
            run.await_fresh("a clean stop of the other", START_S)
        run.end()
