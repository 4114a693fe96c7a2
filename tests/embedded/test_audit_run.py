"""The audit against the real broker: it passes a right output and finds each kind of wrong one."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from fraud_filter.audit.result import AuditResult
from fraud_filter.audit.run import audit
from fraud_filter.kafka.admin import find_input, open_admin
from outputs import Outputs, large
from running import Stage, call, payment

BAD = b'{"payment_id": '


class Scene:
    """Two partitions of payments: a large one, a common one and a malformed one in the first, a large in the second."""

    def __init__(self, outputs: Outputs) -> None:
        self.large, self.common, self.bad = outputs.pay(payment("p1", 6000), payment("p2", 10), BAD)
        (self.other,) = outputs.pay(payment("p3", 7000), partition=1)


@pytest.fixture
def scene(outputs: Outputs) -> Scene:
    return Scene(outputs)


def _audit(outputs: Outputs, **arguments: Any) -> AuditResult:
    return audit(outputs.stage.settings(), **arguments)


def _call(stage: Stage, *words: str) -> subprocess.CompletedProcess[str]:
    return call("audit", *stage.options, "--settle", "0", *words)


def _faults(result: AuditResult) -> tuple[int | None, int, int]:
    return result.lost, result.duplicated, result.unexpected


def test_another_key_and_a_record_without_headers_are_unexpected(outputs: Outputs) -> None:
    """What else may be wrong is in `test_audit_books`."""
    *flagged, rejected = outputs.pay(*large(3), BAD)
    for paid, key in zip(flagged, (b"another", None, b""), strict=True):
        outputs.flag([paid], key=key)
    outputs.reject([rejected], key=b"another")
    foreign = [*outputs.foreign(), *outputs.foreign(rejected=True)]
    result = _audit(outputs, examples=100)
    assert _faults(result) == (0, 0, 6)
    assert {finding.reason for finding in result.examples["unexpected"]} == {
        "written with another key than expected",
        *(f"record of {placed.topic} without readable source headers" for placed in foreign),
    }


def test_records_of_another_topic_or_range_are_left_out(outputs: Outputs, scene: Scene) -> None:
    outputs.flag([scene.large, scene.other])
    outputs.reject([scene.bad])
    outputs.flag([scene.common._replace(topic="elsewhere"), scene.common._replace(offset=99)])
    assert _faults(_audit(outputs)) == (0, 0, 0)


def test_decisions_of_a_former_topic_are_known_by_its_id(outputs: Outputs, scene: Scene) -> None:
    own = find_input(open_admin(outputs.stage.settings()), outputs.stage.settings()).id
    former = "A" * len(own)
    outputs.flag([scene.common, scene.large, scene.common._replace(offset=99)], topic_id=former)
    outputs.flag([scene.other], topic_id=own)
    outputs.reject([scene.bad])
    result = _audit(outputs)
    # The former topic's decision is none on this one's payment.
    assert (*_faults(result), result.former) == (1, 0, 0, 3)
    outputs.flag([scene.large], topic_id=own)
    result = _audit(outputs)
    assert (*_faults(result), result.former, result.ok) == (0, 0, 0, 3, True)


def test_the_range_is_from_start_to_before_end(outputs: Outputs) -> None:
    placed = outputs.pay(*(payment(f"p{number}", 6000) for number in range(10)))
    outputs.flag(placed[3:6])
    assert _faults(_audit(outputs)) == (7, 0, 0)
    inner = _audit(outputs, start={0: 3}, end={0: 6})
    assert (inner.payments, inner.expected, inner.written, inner.ok) == (3, 3, 3, True)
    assert (inner.start, inner.end) == ({0: 3, 1: 0}, {0: 6, 1: 0})


def test_records_that_are_gone_are_not_audited(outputs: Outputs, admin: Any) -> None:
    from kafka.structs import TopicPartition

    placed = outputs.pay(*(payment(f"p{number}", 6000) for number in range(5)))
    outputs.flag(placed[2:])
    admin.delete_records({TopicPartition(outputs.stage.input, 0): 2})
    result = _audit(outputs, start={0: 0})
    assert (result.start[0], result.payments, result.ok, result.complete) == (2, 3, True, False)
    assert _audit(outputs).complete
    ran = _call(outputs.stage, "--from", '{"0": 1}')
    assert ran.returncode == 1, ran.stderr
    assert "not audited, no longer retained: partition 0 offsets 1 to 1 (1 payments)" in " ".join(ran.stdout.split())
    assert _call(outputs.stage, "--from", '{"0": 1}', "--allow-gap").returncode == 0
    assert _call(outputs.stage).returncode == 0


def test_the_verb_tells_what_is_lost_and_passes_what_is_complete(outputs: Outputs, scene: Scene) -> None:
    outputs.flag([scene.large])
    ran = _call(outputs.stage, "--examples", "1")
    assert ran.returncode == 1
    assert "lost: partition 0, offset 2: should be rejected as malformed-json" in ran.stdout
    within = _call(outputs.stage, "--from", '{"0": 0, "1": 1}', "--to", '{"0": 2}')
    assert within.returncode == 0, within.stdout
    outputs.flag([scene.other], partition=1)
    outputs.reject([scene.bad])
    told = _call(outputs.stage, "--json")
    figures = json.loads(told.stdout)
    shown = {name: figures[name] for name in ("ok", "payments", "expected", "written", "rejected", "lost", "end")}
    assert shown == {
        "ok": True, "payments": 4, "expected": 2, "written": 2, "rejected": 1, "lost": 0, "end": {"0": 3, "1": 1},
    }  # fmt: skip
    assert told.returncode == 0
