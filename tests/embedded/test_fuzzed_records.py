"""The query takes any record: it goes on, and each record is flagged, passed or rejected as the oracle says.

`--hypothesis-seed=N` repeats a run; each test prints its seed. In CI the seed is always the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from exhaustive import exhaustive
from fraud_filter.audit.result import AuditResult
from fraud_filter.audit.run import audit
from fraud_filter.config import load
from fraud_filter.oracle import Oracle
from fraud_filter.query.trial import as_table, try_rules
from fraud_filter.rules.ruleset import load_rules
from fraud_filter.schema import load_schema
from fuzzed_records import Record, draw_records, large_records, oversized_records
from oracle_cases import SCHEMA
from running import GOOD, Stage, payment, wait_until

_LAST = "the last one"
#: Sixteen times the default, to draw records as large as a topic takes.
_MOST_BYTES = 1_048_576


@pytest.fixture
def rich(tmp_path: Path) -> dict[str, str]:
    """Settings with a schema of every type, and rules that flag what is not as usual in a valid payment."""
    columns = (f"{field.name} {field.type}{' NOT NULL' if field.required else ''}" for field in SCHEMA.fields)
    (tmp_path / "payment.ddl").write_text(",\n".join(columns))
    odd = (
        f"{field.name} <> {GOOD[field.name]!r}" if field.name in GOOD else f"{field.name} IS NOT NULL"
        for field in SCHEMA.fields
    )  # fmt: skip
    rules = [{"name": f"r{at}", "when": when} for at, when in enumerate(odd)]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"rules": rules}))
    return {"payment_schema": str(tmp_path / "payment.ddl"), "rules": str(tmp_path / "rules.yml")}


def _send(stage: Stage, records: Sequence[Record]) -> None:
    """Appends the records, compressed, to the two partitions in turn, and to each a payment that is flagged."""
    own = {"bootstrap.servers": stage.address, "linger.ms": 20, "message.max.bytes": 50_000_000}
    producer = Producer({**own, "compression.type": "gzip"})
    failed: list[Any] = []
    last = [Record(None, payment(_LAST, 6000))] * 2
    for at, record in enumerate([*records, *last]):
        while True:
            try:
                producer.produce(
                    stage.input, record.value, record.key, partition=at % 2, headers=list(record.headers),
                    on_delivery=lambda error, _: failed.append(error) if error else None,
                )  # fmt: skip
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(60)
    assert not failed, failed[0]


def _run(stage: Stage, **settings: str) -> AuditResult:
    """Runs the filter over all records and audits what it wrote."""

    seen: set[str] = set()

    def is_done() -> bool:
        for message in follower.consume(10_000, timeout=0.2):
            if _LAST.encode() in (message.value() or b""):
                seen.add(str(dict(message.headers() or ())["source.partition"]))
        return len(seen) == 2

    follower = Consumer({"bootstrap.servers": stage.address, "group.id": "follower", "enable.auto.commit": False})
    follower.assign([TopicPartition(stage.flagged, number, OFFSET_BEGINNING) for number in range(2)])
    with stage.run(max_record_bytes=str(_MOST_BYTES), **settings) as program:
        wait_until(is_done, "the last payment of each partition is written", program)
        assert program.stop(60) == 0, program.tail()
    follower.close()
    own: dict[str, Any] = {name: Path(settings[name]) for name in ("payment_schema", "rules") if name in settings}
    return audit(stage.settings().model_copy(update=own | {"max_record_bytes": _MOST_BYTES}), examples=20)


def _check(result: AuditResult, records: Sequence[Record], seed: int) -> None:
    assert result.payments == len(records) + 2
    differ = [
        f"{finding.reason}: {str(records[2 * finding.offset + finding.partition])[:600]}"
        for kind in ("lost", "unexpected")
        for finding in result.examples[kind]
    ]
    assert (result.lost, result.unexpected, differ) == (0, 0, []), f"--hypothesis-seed={seed}: {result}"
    assert result.rejected == result.rejected_expected


def test_records_in_micro_batches(stage: Stage, rich: dict[str, str], seed: int, times: int) -> None:
    huge = oversized_records()
    rare = [Record(None, value) for value in (b"", payment("p1", 1) + b" x")]
    records = [*draw_records(SCHEMA, 3000 * times, seed), *rare, *large_records(), *huge]
    _send(stage, records)
    result = _run(stage, mode="micro-batch", **rich)
    _check(result, records, seed)
    passed = result.payments - result.expected - result.rejected
    assert min(result.expected, result.rejected, passed) > 150, result
    assert result.reject_reasons["too-large"] == len(huge)
    assert set(result.reject_reasons) == {
        *("duplicate-key", "empty-record", "malformed-json", "missing-field", "too-large", "trailing-content"),
        "wrong-type",
    }


@pytest.mark.parametrize("mode", exhaustive(["continuous", "real-time"], but=["real-time"]))
def test_records_one_by_one(stage: Stage, mode: str, seed: int, times: int) -> None:
    huge = oversized_records()
    records = [*draw_records(load_schema(load().payment_schema), 1000 * times, seed), *large_records()[::4], *huge]
    _send(stage, records)
    result = _run(stage, mode=mode)
    _check(result, records, seed)
    assert min(result.expected, result.rejected) > 10, result
    assert result.reject_reasons["too-large"] == len(huge)


def test_any_line_can_be_tried_without_kafka(spark: Any, rich: dict[str, str], tmp_path: Path, seed: int) -> None:
    """`fraud-filter rules test` says of each line what the oracle says."""
    values = [record.value or b"" for record in draw_records(SCHEMA, 1000, seed)]
    lines = [value for value in values if b"\n" not in value and b"\r" not in value]
    lines.append(payment("p2", 6000).replace(b'"p2"', b'"[/p2] :smile:"'))
    (tmp_path / "payments.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    rules = load_rules(Path(rich["rules"]), SCHEMA)
    verdicts = list(try_rules(spark, str(tmp_path / "payments.jsonl"), SCHEMA, rules))
    decisions = Oracle(SCHEMA, rules).decide(lines)
    assert len(verdicts) == len(lines)
    for line, verdict, decision in zip(lines, verdicts, decisions, strict=True):
        reason = verdict.reason and verdict.reason.partition(":")[0]
        assert (reason is None, verdict.rules) == (decision.reason is None, decision.rules), (line, verdict, seed)
    assert "[/p2] :smile:" in as_table(iter(verdicts))
