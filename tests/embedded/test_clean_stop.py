"""A stop that was asked for says nothing but that: whatever Spark logs of the tasks that it kills is no news."""

from __future__ import annotations

import re
from contextlib import closing
from typing import Any

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from exhaustive import exhaustive
from faults import Decisions, events, said_while_stopping
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
