"""The audit of a query of the user's against the real broker, with rows that are written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fraud_filter.audit.result import AuditResult
from fraud_filter.audit.run import audit
from fraud_filter.kafka.admin import find_input, open_admin
from outputs import Outputs
from running import payment

STRUCTURE = "def transform(records):\n    return records.select('key', 'value')\n"
EXPECT = "def expect(record):\n    return 1 / 0 if record.key == b'odd' else record.value\n"


def _audit(outputs: Outputs, directory: Path, text: str, **arguments: Any) -> AuditResult:
    (directory / "own.py").write_text(text)
    settings = outputs.stage.settings().model_copy(update={"query": f"{directory}/own.py:transform"})
    return audit(settings, examples=100, **arguments)


def test_a_row_of_no_record_is_found_by_its_place_alone(outputs: Outputs, tmp_path: Path) -> None:
    own = find_input(open_admin(outputs.stage.settings()), outputs.stage.settings()).id
    first, second, third = outputs.pay(payment("p1", 1), payment("p2", 2), payment("p3", 3))
    outputs.flag([first, second, second, third._replace(topic="elsewhere")], topic_id=own)
    right = _audit(outputs, tmp_path, STRUCTURE)
    assert (right.payments, right.written, right.duplicated, right.unexpected) == (3, 3, 1, 0)
    assert (right.lost, right.expected, right.ok) == (None, None, True)
    assert "can't be told" in right.not_told
    outputs.flag([third._replace(offset=3), third._replace(partition=7), third._replace(offset=-1)], topic_id=own)
    outputs.flag([third], timestamp_ms=5, headers={"decision": "the user's own", "rules.version": "1"})
    outputs.flag([third], topic_id="A" * len(own))
    outputs.foreign()
    wrong = _audit(outputs, tmp_path, STRUCTURE)
    assert (wrong.former, wrong.ok) == (1, False)
    absent = "written, but there is no such record"
    time = f"written with source.timestamp 5, but the record's is {third.timestamp_ms}"
    unexpected = [(one.partition, one.offset, one.reason) for one in wrong.examples["unexpected"]]
    assert [told for told in unexpected if "without" not in told[2]] == [
        (0, 3, absent), (7, 2, absent), (0, -1, absent), (0, 2, time),
    ]  # fmt: skip
    assert wrong.unexpected == 5
    within = _audit(outputs, tmp_path, STRUCTURE, start={0: 1}, end={0: 2})
    assert (within.payments, within.written, within.duplicated) == (1, 2, 1)


def test_expect_tells_what_is_lost_and_what_is_changed(outputs: Outputs, tmp_path: Path) -> None:
    paid = outputs.pay(payment("p1", 1), payment("p2", 2))
    outputs.pay(payment("p3", 3), key=b"odd", partition=1)
    outputs.flag(paid)  # with the field `rules`: it is another value
    wrong = _audit(outputs, tmp_path, STRUCTURE + EXPECT)
    assert (wrong.lost, wrong.unexpected, wrong.unjudged) == (0, 2, 1)
    assert wrong.examples["unjudged"][0].reason == "expect raises ZeroDivisionError: division by zero"
    is_due = EXPECT.replace("record.value", "True")
    right = _audit(outputs, tmp_path, STRUCTURE + is_due)
    assert (right.lost, right.unexpected, right.expected, right.not_told) == (0, 0, 2, "")
    outputs.pay(payment("p4", 4))
    later = _audit(outputs, tmp_path, STRUCTURE + is_due)
    assert (later.lost, later.undecided, later.ok) == (1, 1, False)
