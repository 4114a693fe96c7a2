"""Faults under load: the filter comes back by itself, says why, and an audit finds nothing lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from kafka.admin import NewPartitions
from kafka.structs import TopicPartition

from faults import Decisions, events, java_of, metrics
from filter_under_load import Run
from fraud_filter.metrics.server import get_page
from lab.harness.broker import Broker
from lab.harness.processes import Child, free_ports
from running import Stage, payment, refusal, until, wait_until

TopicMaker = Callable[..., str]
pytestmark = pytest.mark.timed

OUTAGE_S = 20
#: In seconds; from then on a Java that hangs is noticed.
STALL_S = "15"


def test_faults_of_continuous_mode_and_partitions_that_are_added(stage: Stage, admin: Any, broker: Broker) -> None:
    with Run(stage, "continuous", stall_timeout_s=STALL_S) as run:
        run.await_fresh("the start")
        java_of(run.program).kill()
        run.await_fresh("kill -9 of Java")
        assert run.restarts("java-gone") == 1
        run.await_commit()
        require_a_hanging_java_is_replaced(run)
        add_partitions(run, admin)
        assert run.restarts("partitions-added") == 1
        take_away(broker)
        run.await_fresh("the broker came back")
        run.end()


def require_a_hanging_java_is_replaced(run: Run) -> None:
    java_of(run.program).suspend()
    run.await_fresh("SIGSTOP of Java")
    assert run.restarts("stalled") == 1
    (line,) = [line for line in events(run.program, "restarting") if "reason=stalled" in line]
    assert "in_s=" in line
    assert "attempt=1" in line
    assert not events(run.program, "java_killed"), "its end was waited for, though it does not answer"


def add_partitions(run: Run, admin: Any) -> None:
    """Two more, which are read from their first record; no restart is that of a stall."""
    stalled = run.restarts("stalled")
    admin.create_partitions({run.stage.input: NewPartitions(total_count=4)})
    run.feed.partitions = 4
    until(lambda: len(admin.describe_topics([run.stage.input])[0]["partitions"]) == 4, "the broker tells of them")
    run.decisions.close()
    run.decisions = Decisions(run.stage)  # the former one has the topic's partitions in its memory
    run.await_fresh("partitions were added")
    assert len(run.decisions.ends()) == 4
    assert run.restarts("stalled") == stalled


def take_away(broker: Broker) -> None:
    broker.stop()
    time.sleep(OUTAGE_S)
    broker.start()


@pytest.mark.exhaustive  # in continuous mode it is away above
@pytest.mark.parametrize("mode", ["real-time", "micro-batch"])
def test_a_broker_that_is_away_for_a_while(stage: Stage, broker: Broker, mode: str) -> None:
    with Run(stage, mode) as run:
        run.await_fresh("the start")
        take_away(broker)
        run.await_fresh("the broker came back")
        run.end()


@pytest.fixture
def waiting(stage: Stage) -> Iterator[Child]:
    """A filter whose Java process was killed, in the back-off before its restart."""
    with stage.run(restart_backoff_s="300") as program:
        wait_until(lambda: bool(events(program, "started")), "the query runs", program)
        java_of(program).kill()
        wait_until(lambda: bool(events(program, "restarting")), "the back-off", program)
        yield program


def test_sigterm_ends_a_back_off_and_the_checkpoint_is_locked_until_then(stage: Stage, waiting: Child) -> None:
    (line,) = events(waiting, "restarting")
    assert "reason=java-gone" in line
    with stage.run() as second:
        message = refusal(second, 2)
        assert f"another filter (process {waiting.pid}) works on" in message
    began = time.monotonic()
    assert waiting.stop(60) == 0
    assert time.monotonic() - began < 30


def test_sigterm_while_spark_starts(stage: Stage) -> None:
    with stage.run() as program:
        java_of(program)
        began = time.monotonic()
        assert program.stop(30) == 0, program.tail()
        assert time.monotonic() - began < 25
        assert not events(program, "started")


@pytest.mark.parametrize("is_watched", [False, True], ids=["from-its-start-on", "later"])
def test_sigterm_while_java_hangs(stage: Stage, is_watched: bool) -> None:
    with stage.run(stop_timeout_s="3") as program:
        wait_until(lambda: "to_state=starting " in "".join(events(program, "state_changed")), "Spark runs", program)
        java = java_of(program).pid
        while not events(program, "started"):
            program.raise_if_dead()
        if is_watched:
            time.sleep(1)
        os.kill(java, signal.SIGSTOP)
        began = time.monotonic()
        assert program.stop(30) == 0, program.tail()
        assert time.monotonic() - began < 25


def test_too_many_restarts_without_progress_are_told_and_end_the_program(stage: Stage) -> None:
    (port,) = free_ports(1)

    def asked(path: str) -> tuple[int, str]:
        return get_page("127.0.0.1", port, path, 30)

    with stage.run(max_restarts="3", restart_backoff_s="0.1", metrics_port=str(port)) as program:
        for lives in (1, 2, 3, 4):
            wait_until(lambda: len(events(program, "started")) == lives, "the query runs", program)  # noqa: B023
            if lives == 1:
                wait_until(lambda: asked("/readyz")[0] == 200, "it is ready, as nothing waits", program)
                # of no records; later, it would be the progress of another life
                wait_until(lambda: "last commit" in asked("/readyz")[1], "its first commit is seen", program)
            if lives == 4:
                time.sleep(2)  # the query runs, and looks as it did in the first life
                assert asked("/readyz")[0] == asked("/healthz")[0] == 503
                assert "in a restart loop" in asked("/readyz")[1]
            java_of(program).kill()
        assert "gave up after 3 restarts in a row without progress" in refusal(program, 4)


def test_lost_records_are_named_and_a_foreign_checkpoint_is_refused(
    stage: Stage, admin: Any, topics: TopicMaker
) -> None:
    stage.send((f"c{n}", payment(f"p{n}", 6000)) for n in range(20))
    with stage.run() as program, closing(Decisions(stage)) as decisions:
        ends = {number: end - 1 for number, end in decisions.ends().items()}
        wait_until(lambda: decisions.fresh(ends), "all are decided", program)
        wait_until(lambda: sum(stage.committed().values()) == 20, "all are committed", program)
        assert program.stop(30) == 0, program.tail()
    places = stage.send((f"c{n}", payment(f"q{n}", 6000)) for n in range(20))
    lost = [offset for partition, offset in places if partition == 0]
    admin.delete_records({TopicPartition(stage.input, 0): lost[-1] + 1})
    with stage.run() as program:
        message = refusal(program, 3)
        assert f"partition 0 offsets {lost[0]} to {lost[-1]} ({len(lost)} records)" in message
        assert repr(stage.input) in message
    with stage.run(input_topic=topics("another")) as program:
        assert "was made by a query over another source than the topic" in refusal(program, 2)


def test_real_time_mode_goes_on_after_lost_records_where_it_may_and_with_added_partitions(
    stage: Stage, admin: Any
) -> None:
    """Spark's reader of that mode fails on lost ones, whatever `failOnDataLoss` says, and knows of no new partition."""
    short = {"mode": "real-time", "real_time_duration": "5 seconds"}
    stage.send((f"c{n}", payment(f"p{n}", 6000)) for n in range(20))
    with stage.run(**short) as program:
        wait_until(lambda: sum(stage.committed().values()) == 20, "all are committed", program)
        assert program.stop(30) == 0, program.tail()
    places = stage.send((f"c{n}", payment(f"q{n}", 6000)) for n in range(20))
    lost = [offset for partition, offset in places if partition == 0]
    admin.delete_records({TopicPartition(stage.input, 0): lost[-1] + 1})
    with Run(stage, fail_on_data_loss="false", **short) as run:
        run.await_fresh("records were lost")
        java_of(run.program).kill()
        run.await_fresh("kill -9 of Java")
        assert metrics(run.port)["fraud_filter_lost_records_total"] == len(lost)  # told once, not at each start
        assert run.restarts("query-failed") == 0
        (line,) = events(run.program, "data_lost")
        assert f"partition 0 offsets {lost[0]} to {lost[-1]} ({len(lost)} records)" in line
        add_partitions(run, admin)
        assert run.restarts("partitions-added") == 1
        run.end()
