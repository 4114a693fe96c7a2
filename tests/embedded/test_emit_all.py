"""A decision on each payment: approvals are written and audited like flagged payments."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from fraud_filter.audit.gaps import read_recorded
from fraud_filter.audit.run import audit
from lab.harness.processes import kill_family
from running import Stage, payment, wait_until


def test_approvals_are_due_from_where_they_were_switched_on_and_may_share_a_topic(stage: Stage) -> None:
    """The filter that flags alone is killed; another mode goes on, and writes all decisions."""
    first = [*((f"a{n}", payment(f"a{n}", 6000 if n % 2 else 10)) for n in range(20)), ("none", b"{")]
    with stage.run() as program:
        stage.send(first)
        wait_until(lambda: len(_decisions(stage)) == 11, "ten are flagged, one is rejected", program)
        kill_family(program)
    second = [(f"b{n}", payment(f"b{n}", 6000 if n % 4 else 10)) for n in range(40)]
    given = {"emit": "all", "approved_topic": stage.flagged}
    with stage.run(mode="real-time", real_time_duration="5 seconds", **given) as program:
        stage.send(second)
        wait_until(lambda: _decisions(stage).keys() >= {key for key, _ in second}, "all are decided", program)
        assert program.stop() == 0, program.tail()
    told = Counter(decision for key, decision in _decisions(stage).items() if key.startswith("b"))
    assert told == {"approve": 10, "flag": 30}
    settings = stage.settings().model_copy(update={**given, "checkpoint": str(stage.directory / "checkpoint")})
    found = audit(settings, recorded=read_recorded(settings))
    assert (found.lost, found.unexpected) == (0, 0), found
    # The killed filter may have committed nothing: then the next one decides its payments again, and approves them.
    assert (found.expected, found.rejected_expected, found.approved_expected) in ((40, 1, 10), (40, 1, 20))
    assert found.approved == found.approved_expected
    assert len(found.versions) == 2


def _decisions(stage: Stage) -> dict[str, str]:
    """By the record's key, which is unique here."""
    written: list[Any] = [one for records in stage.written().values() for one in records]
    for one in written:
        headers = dict(one.headers)
        is_approved = headers["decision"] == b"approve"
        assert not is_approved or json.loads(one.value)["rules"] == []
    return {one.key.decode(): dict(one.headers)["decision"].decode() for one in written}
