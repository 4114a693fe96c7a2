"""Audits of a stack from this machine, up to what it has committed."""

from __future__ import annotations

import json
from typing import Any

from deployed import Deployed, run
from waiting import wait_until

COMMITTED = "fraud_filter_committed_offset"
_LATEST = "fraud_filter_latest_offset"


def committed_past_the_end(stack: Deployed) -> dict[str, int]:
    """The committed offsets, once they are past what is the input's end now, in every partition."""
    ends = wait_until("the input's end", lambda: stack.metric(_LATEST))

    def past() -> dict[str, int]:
        committed = stack.metric(COMMITTED)
        is_past = all(committed[partition] > end for partition, end in ends.items())
        return {partition: int(offset) for partition, offset in committed.items()} if is_past else {}

    return wait_until("commits past the input's end", past)


def audited(stack: Deployed, committed: dict[str, int] | None = None) -> dict[str, Any]:
    """The audit from this machine, up to the `committed` offsets; nothing may be lost.

    Without offsets it is all that was ever sent, of which a filter that lags has some still to decide.
    """
    reach = ["--to", json.dumps(committed), "--settle", "0"] if committed else ["--settle", "5"]
    audit = run("audit", "--stack", "--json", *reach, FRAUD_ENV_FILE=str(stack.env))
    assert audit.returncode == 0, audit.stdout
    result: dict[str, Any] = json.loads(audit.stdout[audit.stdout.index("{\n") :])
    assert (result["lost"], result["unexpected"]) == (0, 0), result
    return result


def nothing_is_lost(stack: Deployed) -> dict[str, Any]:
    """The audit of all that was ever sent; while the filter catches up, what it has not read yet counts as lost."""
    return wait_until("nothing is lost", lambda: audited(stack), 400, every_s=5)
