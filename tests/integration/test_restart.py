"""`down` and `up` again: the filter goes on from its checkpoint, and nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path

from deployed import Deployed, run
from waiting import wait_until

COMMITTED = "fraud_filter_committed_offset"


def test_down_and_up_goes_on_from_the_checkpoint_and_loses_nothing(stack: Deployed, tmp_path: Path) -> None:
    before = wait_until("a commit", lambda: stack.metric(COMMITTED))
    down = stack.call("down")
    assert down.returncode == 0, down.stdout
    assert stack.open().states() == []
    status = stack.call("status")
    assert (status.returncode, status.stdout) == (1, "fraud-filter-test is not running: make up starts it\n")

    up = stack.call("up")
    assert up.returncode == 0, up.stdout
    after = wait_until("a commit after the restart", lambda: stack.metric(COMMITTED))
    assert before.keys() == after.keys()
    assert all(after[partition] >= offset for partition, offset in before.items())
    result = audited(stack, tmp_path / "audit.json")
    assert result["payments"] > sum(before.values()) > 0


def audited(stack: Deployed, file: Path) -> dict[str, int]:
    """The audit of all that was ever sent, from this machine, as `make audit` does it; nothing may be lost."""
    audit = run("audit", "--json", str(file), "--settle", "5", FRAUD_ENV_FILE=str(stack.env))
    assert audit.returncode == 0, audit.stdout
    result: dict[str, int] = json.loads(file.read_text())
    assert (result["lost"], result["unexpected"]) == (0, 0)
    return result
