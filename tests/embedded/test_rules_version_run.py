"""Rules that change on one checkpoint: decisions say by which they were made, and the audit judges each by its own."""

from __future__ import annotations

import json

import pytest
from kafka.producer.kafka import KafkaProducer

from faults import java_of, kill_all, metrics
from filter_under_load import Run, audit_change, write_rules
from fraud_filter import schema as layout
from fraud_filter.audit.run import audit
from running import Stage

_START_S = 240


@pytest.mark.exhaustive  # test_handover changes them under load, and unit/oracle judges by versions
@pytest.mark.timeout(600)
def test_an_audit_over_a_change_of_rules_finds_nothing_lost_and_nothing_unexpected(stage: Stage) -> None:
    """In real-time mode a kill leaves most that was decided and not committed; the audit does not ask for the mode."""
    rules = stage.directory / "rules.yml"
    write_rules(rules, "old", "amount > 5")  # flags all
    with Run(stage, "real-time", rules=str(rules), real_time_duration="10 seconds") as run:
        run.await_fresh("the start", _START_S)
        write_rules(rules, "new", "amount > 5000")  # every second one
        java_of(run.program).kill()
        run.await_fresh("a restart, which goes on with the rules that the program read", _START_S)
        assert {tuple(json.loads(one.value)["rules"]) for one in stage.written()[stage.flagged]} == {("old",)}
        kill_all(run.program)  # what was decided and not committed is decided again, by others
        run.program.stop()
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
    # A decision that the old rules would be right to make, about a payment that came long after they were replaced.
    by_new = [one for one in stage.written()[stage.flagged] if (layout.HEADER_RULES, version.encode()) in one.headers]
    late = max(by_new, key=lambda one: one.timestamp)
    (old,) = set(told) - {version}
    forged = json.dumps({**json.loads(late.value), "rules": ["old"]}).encode()
    replaced = list((dict(late.headers) | {layout.HEADER_RULES: old.encode()}).items())
    producer = KafkaProducer(bootstrap_servers=stage.address, acks="all")
    producer.send(stage.flagged, key=late.key, value=forged, headers=replaced).get(timeout=20)
    producer.close()
    found = audit_change(stage, rules, unexpected=1)
    assert "were replaced before it came" in found.examples["unexpected"][0].reason
    # without the checkpoint the old rules are not known
    alone = audit(stage.settings().model_copy(update={"rules": rules}))
    assert alone.unexpected > 0
    assert alone.unknown == found.versions[old]
