"""The filter takes any record: it goes on, and what it writes of each is what the oracle says, to the byte.

`--hypothesis-seed=N` repeats a run. In CI the seed is always the same.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from exhaustive import exhaustive
from fraud_filter.audit.run import audit
from hostile_records import SCHEMA, drawn_values, picked_values, write_files
from kafka_records import Record, large_records, oversized_records, with_keys
from running import Stage, payment, wait_until

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


def _decide(stage: Stage, **settings: str) -> None:
    """Runs the filter until it has decided the last payment of each partition."""
    seen: set[str] = set()

    def is_done() -> bool:
        for message in follower.consume(10_000, timeout=0.2):
            if _LAST.encode() in (message.value() or b""):
                seen.add(str(dict(message.headers() or ())["source.partition"]))
        return len(seen) == 2

    follower = Consumer({"bootstrap.servers": stage.address, "group.id": "follower", "enable.auto.commit": False})
    follower.assign([TopicPartition(stage.flagged, number, OFFSET_BEGINNING) for number in range(2)])
    with stage.run(**settings) as program:
        wait_until(is_done, "the last payment of each partition is written", program)
        assert program.stop(60) == 0, program.tail()
    follower.close()


@pytest.mark.parametrize("mode", exhaustive(["micro-batch", "continuous", "real-time"], but=["real-time"]))
def test_the_query_goes_on_and_the_audit_finds_nothing(
    stage: Stage, tmp_path: Path, mode: str, seed: int, times: int
) -> None:
    choose = random.Random(seed)
    values = [*picked_values(SCHEMA), *drawn_values(SCHEMA, 1000 * times, choose)]
    huge = oversized_records()
    records = [*with_keys(values, choose), *large_records(), *huge]
    _send(stage, records)
    changes = {**write_files(tmp_path), "max_record_bytes": _MOST_BYTES}
    _decide(stage, mode=mode, **{name: str(value) for name, value in changes.items()})
    result = audit(stage.settings().model_copy(update=changes), examples=20)
    assert result.payments == len(records) + 2
    differ = [
        f"{finding.reason}: {str(records[2 * finding.offset + finding.partition])[:600]}"
        for kind in ("lost", "unexpected")
        for finding in result.examples[kind]
    ]
    assert (result.lost, result.unexpected, differ) == (0, 0, []), f"--hypothesis-seed={seed}: {result}"
    assert result.rejected == result.rejected_expected
    assert min(result.expected or 0, result.reject_reasons["wrong-type"]) > 100, result
    assert result.reject_reasons["too-large"] == len(huge)
