"""Shows records of a topic: a few lines for a reader, or one line of JSON for a program."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any, NamedTuple

from fraud_filter.config import Settings
from fraud_filter.kafka.consumer import find_bounds, find_partitions, follow_records, open_consumer, read_records
from fraud_filter.records import read_source
from fraud_filter.text.terminal import printable

#: What JSON may hold as itself and a terminal, or a reader of lines, may not.
_TO_ESCAPE = re.compile(r"[^ -~]")


class Record(NamedTuple):
    """A record as it stands on its topic; `appended_ms` is its timestamp in milliseconds since 1970."""

    topic: str
    partition: int
    offset: int
    appended_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    @classmethod
    def of(cls, message: Any) -> Record:
        """From a message of confluent-kafka."""
        return cls(
            message.topic(),
            message.partition(),
            message.offset(),
            message.timestamp()[1],
            message.key(),
            message.value(),
            tuple(message.headers() or ()),
        )

    @property
    def latency_ms(self) -> int | None:
        """Milliseconds from the append of the payment to that of its decision; None where no header tells."""
        source = read_source(self.headers)
        return None if source is None else self.appended_ms - source.timestamp_ms


def lines(record: Record) -> str:
    """For a reader: the record's place and key, one line a header, and the value; no character acts on a terminal."""
    place = f"{record.topic}, partition {record.partition}, offset {record.offset}, {_time(record.appended_ms)}"
    latency = "" if record.latency_ms is None else f", {record.latency_ms} ms after its record"
    width = max((len(name) for name, _ in record.headers), default=0)
    return "\n".join(
        (
            place + latency,
            f"  key    {_legible(record.key)}",
            *(f"  header {printable(name):{width}}  {_legible(value)}" for name, value in record.headers),
            f"  value  {_legible(record.value)}",
        )
    )


def json_line(record: Record) -> str:
    """For a program: one line of JSON in ASCII.

    A value that is JSON stands in it under `value` as it was written, each digit of its numbers included. One that is
    not, or that has a name twice, is a text under `value_text`, and one that is no UTF-8 is under `value_base64`.
    """
    place = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": _time(record.appended_ms),
        "latency_ms": record.latency_ms,
        **_text_or_base64("key", record.key),
        "headers": {name: None if value is None else _forced(value) for name, value in record.headers},
    }
    inlined = _inlined(record.value)
    if inlined is not None:
        return f'{json.dumps(place)[:-1]}, "value": {inlined}}}'
    name = "value" if record.value is None else "value_text"
    return json.dumps(place | _text_or_base64(name, record.value))


def _time(milliseconds: int) -> str:
    """ISO 8601; a producer may stamp its records with a time that is none of these, which is told in milliseconds."""
    try:
        moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms since 1970"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _legible(content: bytes | None) -> str:
    return "none" if content is None else printable(_forced(content))


def _forced(content: bytes) -> str:
    return content.decode(errors="backslashreplace")


def _text_or_base64(name: str, content: bytes | None) -> dict[str, str | None]:
    try:
        return {name: None if content is None else content.decode()}
    except UnicodeDecodeError:
        return {f"{name.removesuffix('_text')}_base64": base64.b64encode(content or b"").decode()}


def _inlined(value: bytes | None) -> str | None:
    """The value as a part of a line of JSON; None where it is no JSON, or a reader of JSON would lose some of it."""
    try:
        text = (value or b"").decode()
        # Numbers are not looked into: any number of digits is right.
        json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse, parse_int=len, parse_float=len)
    except (ValueError, RecursionError):
        return None
    # Outside of its texts JSON has no such characters but blanks and ends of lines.
    return _TO_ESCAPE.sub(lambda found: " " if found[0] in "\t\r\n" else json.dumps(found[0])[1:-1], text).replace(
        "\x7f", "\\u007f"
    )


def _unique(members: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in members}) < len(members):
        raise ValueError("a name stands twice")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


#: First retained offset and end by partition, by topic.
Bounds = Mapping[str, Mapping[int, tuple[int, int]]]


def read_last(settings: Settings, names: Sequence[str], count: int) -> list[Record]:
    """The `count` records of all topics that were appended last, the oldest first.

    Args:
        names: settings that name the topics, such as "flagged_topic".

    Raises:
        UsageError: no broker answers within `kafka_timeout_s` seconds, or a topic does not exist.
        FraudFilterError: the broker stopped answering.
    """
    last: list[Record] = []
    for topic, bounds in _bounds(settings, names).items():
        start = {partition: max(low, end - count) for partition, (low, end) in bounds.items()}
        last += _between(settings, topic, start, {partition: end for partition, (_, end) in bounds.items()})
        last = sorted(last, key=lambda record: record.appended_ms)[-count:]
    return last


def read_all(settings: Settings, names: Sequence[str]) -> Iterator[Record]:
    """Every record that is retained, topic by topic; the order within a partition is that of its offsets.

    Raises:
        as `read_last`.
    """
    for topic, bounds in _bounds(settings, names).items():
        start = {partition: low for partition, (low, _) in bounds.items()}
        yield from _between(settings, topic, start, {partition: end for partition, (_, end) in bounds.items()})


def follow(settings: Settings, names: Sequence[str], stop: Event, *, from_beginning: bool) -> Iterator[Record]:
    """Records as they come, until `stop` is set; with `from_beginning` after all that are retained.

    Raises:
        as `read_last`.
    """
    start = {
        topic: {number: low if from_beginning else end for number, (low, end) in bounds.items()}
        for topic, bounds in _bounds(settings, names).items()
    }
    with open_consumer(settings, auto_offset_reset="earliest") as consumer:
        for batch in follow_records(consumer, settings, names, start, stop):
            yield from map(Record.of, batch)


def _bounds(settings: Settings, names: Sequence[str]) -> Bounds:
    with open_consumer(settings) as consumer:
        return {
            topic: find_bounds(consumer, settings, topic, partitions)
            for topic, partitions in find_partitions(consumer, settings, names).items()
        }


def _between(settings: Settings, topic: str, start: Mapping[int, int], end: Mapping[int, int]) -> Iterator[Record]:
    for batch in read_records(settings, topic, start, end):
        yield from map(Record.of, batch)
