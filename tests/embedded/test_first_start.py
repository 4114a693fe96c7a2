"""Where a query begins is decided once: a restart before the first commit goes on from there."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from faults import events, java_of
from fraud_filter.config import ModeName
from running import Stage, payment, until, wait_until

MODES = get_args(ModeName)


@pytest.mark.parametrize("mode", MODES)
def test_latest_is_resolved_at_the_first_start_alone(stage: Stage, mode: str) -> None:
    def send(name: str) -> None:
        stage.send((f"{name}-{number}", payment(f"{name}-{number}", 6000)) for number in range(10))

    def decided() -> set[str]:
        flagged = stage.written()[stage.flagged]
        return {json.loads(record.value)["payment_id"].partition("-")[0] for record in flagged}

    send("before")
    with stage.run(mode=mode, starting_offsets="latest", restart_backoff_s="0.2") as program:
        until(lambda: len(events(program, "started")) == 1, "the query runs", 90)
        java = java_of(program)
        java.suspend()  # Spark still plans
        assert not list(stage.directory.glob("checkpoint/commits/[0-9]*")), "the test came too late"
        send("first")
        java.kill()
        wait_until(lambda: len(events(program, "started")) == 2, "the query runs again", program)
        send("last")
        wait_until(lambda: "last" in decided(), "what came after the restart is decided", program)
        wait_until(lambda: "first" in decided(), "what came after the first start is decided", program, 20)
        assert "before" not in decided()
        assert program.stop(30) == 0, program.tail()
