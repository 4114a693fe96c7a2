"""Rules that change on one checkpoint: decisions say by which they were made, and the audit judges each by its own."""

from __future__ import annotations

import json

import pytest

from faults import kill_all, metrics
from filter_under_load import Run, audit_change, write_rules
from fraud_filter import schema as layout
from fraud_filter.audit.run import audit
from running import Stage

_START_S = 240


@pytest.mark.timeout(600)
def test_an_audit_over_a_change_of_rules_finds_nothing_lost_and_nothing_unexpected(stage: Stage) -> None:
    """In real-time mode a kill leaves most that was decided and not committed; the audit does not ask for the mode."""
    rules = stage.directory / "rules.yml"
    write_rules(rules, "old", "amount > 5")  # flags all
    with Run(stage, "real-time", rules=str(rules), real_time_duration="10 seconds") as run:
        run.await_fresh("the start", _START_S)
        kill_all(run.program)  # what was decided and not committed is decided again, by others
        run.program.stop()
        write_rules(rules, "new", "amount > 5000")  # every second one
        run.program.start()
        run.await_fresh("the change", _START_S)
        (version,) = (name.partition("/")[2] for name in metrics(run.port, "version") if "rules_info" in name)
        run.drain(run.program)
    result = audit_change(stage, rules)
    assert version in result.versions
    assert min(result.versions.values()) > 0
    told: dict[str, set[str]] = {}
    for record in stage.written()[stage.flagged]:
        headers = dict(record.headers)
        told.setdefault(headers[layout.HEADER_RULES].decode(), set()).update(json.loads(record.value)["rules"])
    assert told[version] == {"new"}
    assert sorted(map(sorted, told.values())) == [["new"], ["old"]]
    # without the checkpoint the old rules are not known
    alone = audit(stage.settings().model_copy(update={"rules": rules}))
    assert alone.unexpected > 0
    assert alone.unknown == result.versions[next(other for other in result.versions if other != version)]
