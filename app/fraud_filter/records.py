"""What every record on Kafka has beside its value: the source headers of what is written, and how large it may be.

A payment that a topic takes is written with more bytes than it had: headers and rules are added, and numbers are
written in full. Kafka's producer and broker refuse what is above their limits, and a refused record would end the
query.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pyroaring import BitMap64

from fraud_filter import schema as layout
from fraud_filter.config import Settings
from fraud_filter.schema import FIRST_TIME_US, LAST_TIME_US, REASON_RECORD_TIME, REASON_TOO_LARGE
from fraud_filter.text.ddl import Kind

#: Of a payment's number among all payments of a topic.
OFFSET_BITS, _PARTITION_BITS = 48, 15

_GROWTH = 4
#: `0,` of an array of TIMESTAMP, in seconds, is written as `"1970-01-01T00:00:00.000000Z",`.
_GROWTH_OF_TIMES = 15

#: For headers, the names of matched rules, the names of fields, and fields that are there once.
_ADDED_BYTES = 65_536


def is_too_large(key: bytes | None, value: bytes | None, limit: int) -> bool:
    """Whether a record is above `limit`, the setting max_record_bytes: it is rejected without its key and value."""
    return len(key or b"") + len(value or b"") > limit


def why_unread(key: bytes | None, value: bytes | None, timestamp_ms: int, limit: int) -> str | None:
    """Why a record is rejected without its key and value (a REASON_* value), or None.

    Args:
        timestamp_ms: the record's own, in milliseconds since 1970.
        limit: the setting max_record_bytes.
    """
    if is_too_large(key, value, limit):
        return REASON_TOO_LARGE
    return None if FIRST_TIME_US <= timestamp_ms * 1000 <= LAST_TIME_US else REASON_RECORD_TIME


def most_written_bytes(settings: Settings) -> int:
    """The size that the largest written record may have: what the sink and the output topics must take.

    Raises:
        UsageError: the schema's file can't be used.
    """
    growth = _GROWTH
    if not settings.query:
        schema = layout.input_schema(settings)
        growth = max(_growth(field.kind, has_unit=bool(schema.time_unit)) for field in schema.fields)
    return growth * settings.max_record_bytes + _ADDED_BYTES


def _growth(kind: Kind, *, has_unit: bool) -> int:
    """How many bytes are written for each one that is read, at most, where arrays and maps hold many values.

    Args:
        has_unit: numbers are times, by the setting time_unit.
    """
    if kind.parts:
        return max(_growth(part, has_unit=has_unit) for _, part in kind.parts)
    if kind.name == "TIMESTAMP" and has_unit:
        return _GROWTH_OF_TIMES
    # Of a DECIMAL `1,` is written with all digits behind the point, and `1e37,` with all before it.
    return max(_GROWTH, (kind.scale + 4) // 2, (kind.precision + 6) // 4)


def decision_id(partition: int, offset: int) -> int:
    """The number of the payment that a decision is about, among all payments of a topic.

    Raises:
        ValueError: no topic has such a partition or offset.
    """
    if not (0 <= partition < 1 << _PARTITION_BITS and 0 <= offset < 1 << OFFSET_BITS):
        raise ValueError(f"partition {partition}, offset {offset}")
    return partition << OFFSET_BITS | offset


def decisions_between(start: Mapping[int, int], end: Mapping[int, int]) -> BitMap64:
    """The `decision_id` of the payments from offset `start` to before `end`, by partition; `end` names those."""
    found = BitMap64()
    for number, offset in end.items():
        first = decision_id(number, 0)
        found.add_range(first + start[number], first + offset)
    return found


Headers = Iterable[tuple[str, bytes | None]]


class Source(NamedTuple):
    """Where a decided payment was read; `timestamp_ms` is its append time in milliseconds since 1970.

    `reason` is the reject.reason header of a rejected record, else empty; `topic_id`, and the `version` of
    the rules and of the `model` that decided, are empty where none was written. `truncated` are features whose window
    may be cut short. `decision` is APPROVE, FLAG or REJECT. `writer` is the generation of the filter that wrote it, 0
    where none was written.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    reason: str
    topic_id: str = ""
    version: str = ""
    model: str = ""
    truncated: tuple[str, ...] = ()
    decision: str = layout.FLAG
    writer: int = 0


def read_source(headers: Headers | None) -> Source | None:
    """The source that the headers tell; None when one of them is missing or can't be read.

    Former versions wrote no decision, and a reason to what they rejected.
    """
    found = dict(headers or ())
    try:
        return Source(
            found[layout.HEADER_TOPIC].decode(),  # type: ignore[union-attr]
            int(found[layout.HEADER_PARTITION]),  # type: ignore[arg-type]
            int(found[layout.HEADER_OFFSET]),  # type: ignore[arg-type]
            _timestamp(int(found[layout.HEADER_TIMESTAMP])),  # type: ignore[arg-type]
            _text(found, layout.HEADER_REASON),
            _text(found, layout.HEADER_TOPIC_ID),
            _text(found, layout.HEADER_RULES),
            _text(found, layout.HEADER_MODEL),
            tuple(filter(None, _text(found, layout.HEADER_TRUNCATED).split(","))),
            _decision(found),
            int(_text(found, layout.HEADER_WRITER) or 0),
        )
    except (KeyError, ValueError, TypeError, AttributeError):
        return None


def _decision(found: Mapping[str, bytes | None]) -> str:
    former = layout.REJECT if layout.HEADER_REASON in found else layout.FLAG
    decision = _text(found, layout.HEADER_DECISION) or former
    if decision not in (layout.APPROVE, layout.FLAG, layout.REJECT):
        raise ValueError(decision)
    return decision


def _timestamp(timestamp_ms: int) -> int:
    if not -(2**63) <= timestamp_ms < 2**63:
        raise ValueError(timestamp_ms)
    return timestamp_ms


def _text(found: Mapping[str, bytes | None], name: str) -> str:
    return (found.get(name) or b"").decode(errors="replace")
