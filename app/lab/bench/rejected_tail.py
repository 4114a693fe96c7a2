"""How far a contender has read, seen at next to no cost while it is measured: the marks that it has rejected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from fraud_filter.config import Settings
from fraud_filter.kafka.input_topic import has_passed
from fraud_filter.kafka.offsets import find_bounds, find_partitions, open_consumer
from fraud_filter.query.source_headers import read_source


class RejectedTail:
    """Follows the rejected topic; asked now and then, it costs next to nothing in between."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._reached: dict[int, int] = {}

    def has_passed(self, end: Mapping[int, int]) -> bool:
        """Whether a record at or after the offset `end` of each input partition has been rejected by now."""
        for message in self._consumer.consume(10_000, timeout=0.1):
            headers: Any = message.headers()
            source = None if message.error() else read_source(headers)
            if source is not None:
                self._reached[source.partition] = max(self._reached.get(source.partition, -1), source.offset)
        return has_passed(self._reached, end)


@contextmanager
def follow_rejected(settings: Settings) -> Iterator[RejectedTail]:
    """The rejected topic of the settings, from its beginning.

    Raises:
        UsageError: no broker answers within `kafka_timeout_s` seconds, or there is no such topic.
    """
    # A long wait between fetches: the broker shall work for the contender.
    with open_consumer(settings, fetch_wait_max_ms=500, fetch_min_bytes=1_000_000) as consumer:
        topic = settings.rejected_topic
        partitions = find_partitions(consumer, settings, ("rejected_topic",))[topic]
        bounds = find_bounds(consumer, settings, topic, partitions)
        consumer.assign([TopicPartition(topic, partition, low) for partition, (low, _) in bounds.items()])
        yield RejectedTail(consumer)
