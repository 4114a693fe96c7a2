"""Topics as the query would leave them, written by hand, so that a test knows what is right and wrong in them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kafka.producer.kafka import KafkaProducer

from fraud_filter import schema as layout
from running import Stage, payment

_WAIT_S = 30


class Placed(NamedTuple):
    """A record and where the broker put it; `timestamp_ms` is its append time, milliseconds since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


class Outputs:
    """Writes to the topics of a stage: payments, and decisions about them. Use as a context manager."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._producer = KafkaProducer(bootstrap_servers=stage.address, acks="all", linger_ms=5)

    def __enter__(self) -> Outputs:
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.close()

    def pay(self, *values: bytes | None, key: bytes | None = b"card", partition: int = 0) -> list[Placed]:
        """Appends payments to the input topic."""
        return self._write(self.stage.input, [(key, value, []) for value in values], partition)

    def flag(
        self,
        payments: Iterable[Placed],
        rules: Sequence[str] = ("large-amount",),
        *,
        changes: dict[str, Any] | None = None,
        key: bytes | None = b"card",
        partition: int = 0,
        timestamp_ms: int | None = None,
        topic_id: str = "",
        version: str = "",
        headers: Mapping[str, str] | None = None,
        topic: str = "",
    ) -> list[Placed]:
        """Appends a flagged record for each payment.

        Args:
            rules: the names that the record gives.
            changes: fields that differ from the payment's.
            key: that of `pay`, or another.
            timestamp_ms: another source.timestamp than the payment's, in milliseconds since 1970.
            topic_id: of the payment's topic, for a header; "" for none. `version`: of the rules, as well.
            headers: further ones.
            topic: another than that of flagged payments.
        """
        records = []
        for paid in payments:
            fields = {**json.loads(paid.value or b""), **(changes or {}), layout.RULES_FIELD: list(rules)}
            more = [(name, text.encode()) for name, text in (headers or {}).items()]
            records.append((key, json.dumps(fields).encode(), _source(paid, timestamp_ms, topic_id, version) + more))
        return self._write(topic or self.stage.flagged, records, partition)

    def reject(self, payments: Iterable[Placed], reason: str = layout.REASON_MALFORMED, **other: Any) -> list[Placed]:
        """Appends a rejected record for each payment; `other` may have a `key` or `value` that is not the payment's."""
        records = [
            (
                other.get("key", paid.key),
                other.get("value", paid.value),
                [*_source(paid), (layout.HEADER_REASON, reason.encode())],
            )
            for paid in payments
        ]
        return self._write(self.stage.rejected, records, 0)

    def foreign(self, value: bytes = b"{}", *, rejected: bool = False) -> list[Placed]:
        """Appends a record of another program: without headers."""
        topic = self.stage.rejected if rejected else self.stage.flagged
        return self._write(topic, [(None, value, [])], 0)

    def _write(self, topic: str, records: Sequence[tuple[Any, Any, Any]], partition: int) -> list[Placed]:
        sent = [
            self._producer.send(topic, key=key, value=value, headers=headers, partition=partition)
            for key, value, headers in records
        ]
        self._producer.flush(_WAIT_S)
        placed = [future.get(timeout=_WAIT_S) for future in sent]
        return [
            Placed(topic, record.partition, record.offset, record.timestamp, key, value)
            for record, (key, value, _) in zip(placed, records, strict=True)
        ]


def large(count: int) -> list[bytes]:
    """Payments that the rule for large amounts flags."""
    return [payment(f"p{number}", 6000) for number in range(count)]


def latencies(payments: Sequence[Placed], decided: Sequence[Placed]) -> list[int]:
    """From a payment's append to its decision's, in milliseconds, pair by pair."""
    return [out.timestamp_ms - paid.timestamp_ms for paid, out in zip(payments, decided, strict=True)]


def _source(
    paid: Placed, timestamp_ms: int | None = None, topic_id: str = "", version: str = ""
) -> list[tuple[str, bytes]]:
    numbers = {
        layout.HEADER_PARTITION: paid.partition,
        layout.HEADER_OFFSET: paid.offset,
        layout.HEADER_TIMESTAMP: paid.timestamp_ms if timestamp_ms is None else timestamp_ms,
    }
    return [
        (layout.HEADER_TOPIC, paid.topic.encode()),
        *((name, str(number).encode()) for name, number in numbers.items()),
        *([(layout.HEADER_TOPIC_ID, topic_id.encode())] if topic_id else []),
        *([(layout.HEADER_RULES, version.encode())] if version else []),
    ]
