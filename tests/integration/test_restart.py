"""`down` and `up` again: the filter goes on from its checkpoint, and nothing is lost."""

from __future__ import annotations

from audits import audited, committed_past_the_end
from deployed import Deployed


def test_down_and_up_goes_on_from_the_checkpoint_and_loses_nothing(stack: Deployed) -> None:
    before = committed_past_the_end(stack)
    down = stack.call("down")
    assert down.returncode == 0, down.stdout
    assert stack.open().states() == []
    status = stack.call("status")
    assert (status.returncode, status.stdout) == (1, "fraud-filter-test is not running: `fraud-filter up` starts it\n")

    up = stack.call("up")
    assert up.returncode == 0, up.stdout
    after = committed_past_the_end(stack)
    assert before.keys() == after.keys()
    result = audited(stack, after)
    assert result["payments"] == sum(after.values()) > sum(before.values()) > 0
