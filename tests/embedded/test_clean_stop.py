"""A stop that was asked for says nothing but that: whatever Spark logs of the tasks that it kills is no news."""

from __future__ import annotations

import re
from contextlib import closing
from typing import Any

import pytest
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.structs import TopicPartition

from exhaustive import exhaustive
from faults import Decisions, Feed, events, java_of, said_while_stopping
from lab.harness.processes import Child
from running import Stage, payment, wait_until

#: So short that a stop always meets the end of an epoch.
EPOCHS = {"continuous_interval": "100 milliseconds"}


def stop(program: Child) -> None:
    assert program.stop(30) == 0, program.tail()
    assert said_while_stopping(program) == []
    assert events(program, "stopped")


def _newest(program: Child, *kinds: str) -> str:
    """The last event that is one of these."""
    return [line for line in program.tail(5000) if any(f"event={kind} " in line for kind in kinds)][-1]


@pytest.mark.exhaustive  # test_modes_run stops each mode under load
def test_a_stop_under_load_is_silent_at_an_epoch_s_end(stage: Stage) -> None:
    """That of each mode as it is shipped, at rest and under load, is looked at in `test_modes_run`."""
    with (
        stage.run(mode="continuous", **EPOCHS) as program,
        closing(Decisions(stage)) as decisions,
        Feed(stage, rate=400) as feed,
    ):
        for _ in range(2):  # the first wait is the start's
            ends = decisions.ends()
            wait_until(lambda: decisions.fresh(ends), "fresh decisions", program)  # noqa: B023
        stop(program)
        feed.stop()


@pytest.mark.parametrize("mode", exhaustive(["continuous", "real-time"], but=["real-time"]))
def test_a_task_that_fails_is_told_and_the_stop_after_it_is_silent(stage: Stage, admin: Any, mode: str) -> None:
    """Its output topic takes no record any more, for a while. The stop is one at rest, and meets an epoch's end."""
    resource = (ConfigResourceType.TOPIC, stage.flagged)
    with stage.run(mode=mode, restart_backoff_s="0.2", **EPOCHS) as program, closing(Decisions(stage)) as decisions:
        stage.send([("card", payment("first", 6000))])
        wait_until(lambda: bool(decisions.newest()), "the query decides", program)
        admin.alter_configs([ConfigResource(*resource, configs={"max.message.bytes": "10"})])

        def failed() -> bool:  # a task notices at the next record that the last was refused
            stage.send([("card", payment("p", 6000))])  # one by one: Kafka's producer would split a batch forever
            return bool(events(program, "restarting"))

        wait_until(failed, "the query failed", program)
        admin.alter_configs([ConfigResource(*resource, configs={"max.message.bytes": "1048588"})])
        told = "\n".join(program.tail(5000))
        assert re.search(r"level=WARN logger=TaskSetManager .*Lost task", told)
        assert "RecordTooLargeException" in told
        assert "\tat " in told
        ends = {number: end - 1 for number, end in decisions.ends().items()}
        wait_until(lambda: decisions.fresh(ends), "all are decided", program)
        # What failed twice at one place is searched for before the query runs again, and the search decides, too.
        wait_until(lambda: "event=started " in _newest(program, "started", "restarting"), "it runs", program)
        stop(program)


@pytest.mark.exhaustive  # as a task that fails
def test_a_reader_that_fails_is_told(stage: Stage, admin: Any) -> None:
    """What it would read next is gone when it looks again."""
    with stage.run(mode="continuous") as program, closing(Decisions(stage)) as decisions:
        stage.send((f"c{n}", payment(f"p{n}", 6000)) for n in range(20))
        ends = {number: end - 1 for number, end in decisions.ends().items()}
        wait_until(lambda: decisions.fresh(ends), "all are decided", program)
        java = java_of(program)
        java.suspend()
        places = stage.send((f"c{n}", payment(f"q{n}", 6000)) for n in range(20))
        admin.delete_records({TopicPartition(stage.input, number): offset + 1 for number, offset in places})
        java.resume()
        assert program.wait(60) == 3, program.tail()
        told = "\n".join(program.tail(5000))
        assert "logger=ContinuousQueuedDataReader$DataReaderThread data reader thread failed" in told
        assert "\tat " in told
