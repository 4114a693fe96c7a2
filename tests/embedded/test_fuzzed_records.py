"""The query takes any record: it goes on, and each record is flagged, passed or rejected as the oracle says.

`--hypothesis-seed=N` repeats a run; each test prints its seed. In CI the seed is always the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from decider import Decider
from exhaustive import exhaustive
from fraud_filter.audit.run import audit
from fraud_filter.config import load
from fraud_filter.query.rules_test import as_table, try_rules
from fraud_filter.rules.ruleset import load_rules
from fraud_filter.schema import load_schema
from fuzzed_records import Record, draw_records, large_records, oversized_records
from oracle_cases import SCHEMA
from running import GOOD, Stage, payment, wait_until

_LAST = "the last one"
#: Sixteen times the default, to draw records as large as a topic takes.
_MOST_BYTES = 1_048_576


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


def _decide(stage: Stage, mode: str) -> None:
    """Runs the filter until it has decided the last payment of each partition."""
    seen: set[str] = set()

    def is_done() -> bool:
        for message in follower.consume(10_000, timeout=0.2):
            if _LAST.encode() in (message.value() or b""):
                seen.add(str(dict(message.headers() or ())["source.partition"]))
        return len(seen) == 2

    follower = Consumer({"bootstrap.servers": stage.address, "group.id": "follower", "enable.auto.commit": False})
    follower.assign([TopicPartition(stage.flagged, number, OFFSET_BEGINNING) for number in range(2)])
    with stage.run(mode=mode, max_record_bytes=str(_MOST_BYTES)) as program:
        wait_until(is_done, "the last payment of each partition is written", program)
        assert program.stop(60) == 0, program.tail()
    follower.close()


@pytest.mark.parametrize("mode", exhaustive(["micro-batch", "continuous", "real-time"], but=["real-time"]))
def test_the_query_goes_on_and_the_audit_finds_nothing(stage: Stage, mode: str, seed: int, times: int) -> None:
    huge = oversized_records()
    drawn = draw_records(load_schema(load().payment_schema), 1000 * times, seed)
    records = [*drawn, Record(None, b""), *large_records(), *huge]
    _send(stage, records)
    _decide(stage, mode)
    result = audit(stage.settings().model_copy(update={"max_record_bytes": _MOST_BYTES}), examples=20)
    assert result.payments == len(records) + 2
    differ = [
        f"{finding.reason}: {str(records[2 * finding.offset + finding.partition])[:600]}"
        for kind in ("lost", "unexpected")
        for finding in result.examples[kind]
    ]
    assert (result.lost, result.unexpected, differ) == (0, 0, []), f"--hypothesis-seed={seed}: {result}"
    assert result.rejected == result.rejected_expected
    assert min(result.expected, result.rejected) > 10, result
    assert result.reject_reasons["too-large"] == len(huge)


def test_each_line_is_judged_as_the_oracle_does_without_kafka(
    spark: Any, tmp_path: Path, seed: int, times: int
) -> None:
    """As `fraud-filter rules test` does it, by a schema of every type and rules that flag what is not as usual."""
    values = [record.value or b"" for record in draw_records(SCHEMA, 3000 * times, seed)]
    lines = [value for value in values if b"\n" not in value and b"\r" not in value]
    lines.append(payment("p1", 1) + b" x")
    lines.append(payment("p2", 6000).replace(b'"p2"', b'"[/p2] :smile:"'))
    (tmp_path / "payments.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    odd = (
        f"{field.name} <> {GOOD[field.name]!r}" if field.name in GOOD else f"{field.name} IS NOT NULL"
        for field in SCHEMA.fields
    )  # fmt: skip
    predicates = [{"name": f"r{at}", "when": when} for at, when in enumerate(odd)]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"rules": predicates}))
    rules = load_rules(tmp_path / "rules.yml", SCHEMA)
    verdicts = list(try_rules(spark, str(tmp_path / "payments.jsonl"), SCHEMA, rules))
    decisions = list(Decider(SCHEMA, rules).decide(lines))
    assert len(verdicts) == len(lines)
    for line, verdict, decision in zip(lines, verdicts, decisions, strict=True):
        reason = verdict.reason and verdict.reason.partition(":")[0]
        assert (reason is None, verdict.rules) == (decision.reason is None, decision.rules), (line, verdict, seed)
    assert "[/p2] :smile:" in as_table(iter(verdicts))
    reasons = Counter(decision.reason for decision in decisions)
    kinds = {"duplicate-key", "malformed-json", "missing-field", "trailing-content", "wrong-type"}
    assert kinds <= reasons.keys(), reasons
    flagged = sum(bool(decision.rules) for decision in decisions)
    assert min(flagged, reasons[None] - flagged) > 100
