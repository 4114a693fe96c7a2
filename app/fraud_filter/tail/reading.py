"""Reads the records that are to be shown: the last ones of some topics, all, or those that come."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from threading import Event

from confluent_kafka import Consumer, KafkaError, TopicPartition

from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.consumer import find_bounds, find_partitions, open_consumer, read_records
from fraud_filter.kafka.refusals import NoBrokerError
from fraud_filter.tail.record import Record

#: First retained offset and end by partition, by topic.
Bounds = Mapping[str, Mapping[int, tuple[int, int]]]

#: How long a look for new records waits, and so how soon a stop is noticed.
_POLL_S = 0.1
_BATCH_RECORDS = 1000
#: How often partitions that were added to the topics are looked for.
_REFRESH_S = 30.0


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
    known = _bounds(settings, names)
    # What is removed while it is read, by retention, is passed over.
    with open_consumer(settings, auto_offset_reset="earliest") as consumer:
        consumer.assign(
            [
                TopicPartition(topic, partition, low if from_beginning else end)
                for topic, bounds in known.items()
                for partition, (low, end) in bounds.items()
            ]
        )
        refresh_at = time.monotonic() + _REFRESH_S
        while not stop.is_set():
            for message in consumer.consume(_BATCH_RECORDS, timeout=_POLL_S):
                error = message.error()
                if error is None:
                    yield Record.of(message)
                elif not error.retriable() and error.code() != KafkaError._ALL_BROKERS_DOWN:
                    raise FraudFilterError(f"topic {message.topic()!r} can't be read: {error.str()}")
            if time.monotonic() >= refresh_at:
                _add_partitions(consumer, settings, names)
                refresh_at = time.monotonic() + _REFRESH_S


def _bounds(settings: Settings, names: Sequence[str]) -> Bounds:
    with open_consumer(settings) as consumer:
        return {
            topic: find_bounds(consumer, settings, topic, partitions)
            for topic, partitions in find_partitions(consumer, settings, names).items()
        }


def _between(settings: Settings, topic: str, start: Mapping[int, int], end: Mapping[int, int]) -> Iterator[Record]:
    for batch in read_records(settings, topic, start, end):
        yield from map(Record.of, batch)


def _add_partitions(consumer: Consumer, settings: Settings, names: Sequence[str]) -> None:
    """Partitions that were added since the start are read from their beginning."""
    try:
        topics = find_partitions(consumer, settings, names)
    except NoBrokerError:  # librdkafka goes on trying, and so do we
        return
    held = {(place.topic, place.partition) for place in consumer.assignment()}
    added = {(topic, partition) for topic, partitions in topics.items() for partition in partitions} - held
    if added:
        consumer.incremental_assign([TopicPartition(topic, partition, 0) for topic, partition in sorted(added)])
