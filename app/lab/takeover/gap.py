"""The gap between an interruption and the decisions that come after it, by the broker's times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from fraud_filter.config import Settings
from fraud_filter.kafka.consumer import find_bounds, find_partitions, open_consumer
from fraud_filter.records import read_source
from lab.harness.waiting import TooLateError

_POLL_S = 0.1


@dataclass(frozen=True)
class Gap:
    """Seconds from the interruption to the first decision about a payment that was appended after it.

    `every_partition_s`: to such a decision about a payment of each partition. Of a planned change: the longest time
    between two decisions, and between two about payments of one partition.
    """

    seconds: float
    every_partition_s: float


@dataclass
class FlaggedTail:
    """The flagged topic from its end on; `open_tail` gives one."""

    consumer: Consumer
    partitions: int
    _first: dict[int, float] = field(default_factory=dict)
    _newest: dict[int, float] = field(default_factory=dict)
    _longest: list[float] = field(default_factory=lambda: [0.0, 0.0])

    def await_fresh(self, at: float, timeout_s: float, look: Callable[[], None]) -> Gap:
        """Reads on until each input partition has a decision about a payment that was appended after `at`.

        Args:
            at: the interruption, in seconds since 1970; broker and we have one clock.
            timeout_s: the longest wait, in seconds.
            look: called now and then; raises when waiting is of no use any more.

        Raises:
            TooLateError: they did not come in time.
        """
        self._first.clear()
        end = time.monotonic() + timeout_s
        while len(self._first) < self.partitions:
            if time.monotonic() > end:
                raise TooLateError(f"no decision about a payment that came after the kill within {timeout_s:g} s")
            self.read(at)
            look()
        found = self._first.values()
        return Gap(round(min(found) - at, 3), round(max(found) - at, 3))

    @property
    def longest(self) -> Gap:
        """The longest gaps between decisions that were read."""
        return Gap(*(round(seconds, 3) for seconds in self._longest))

    def read(self, at: float = float("inf")) -> None:
        """Takes what has come, for `at` see `await_fresh`."""
        for message in self.consumer.consume(1000, timeout=_POLL_S):
            self._take(message, at)

    def _take(self, message: Any, at: float) -> None:
        source = read_source(message.headers()) if message.error() is None else None
        if source:
            appended = message.timestamp()[1] / 1000
            for kind, newest in enumerate(
                (max(self._newest.values(), default=None), self._newest.get(source.partition))
            ):
                if newest is not None:
                    self._longest[kind] = max(self._longest[kind], appended - newest)
            self._newest[source.partition] = max(appended, self._newest.get(source.partition, appended))
        if source and source.timestamp_ms / 1000 > at:
            self._first.setdefault(source.partition, message.timestamp()[1] / 1000)


@contextmanager
def open_tail(settings: Settings) -> Iterator[FlaggedTail]:
    """Reads the flagged topic from now on.

    Raises:
        UsageError: no broker answers within `kafka_timeout_s` seconds, or there is no such topic.
    """
    with open_consumer(settings) as consumer:
        found = find_partitions(consumer, settings, ["input_topic", "flagged_topic"])
        topic = settings.flagged_topic
        bounds = find_bounds(consumer, settings, topic, found[topic])
        consumer.assign([TopicPartition(topic, number, end) for number, (_, end) in bounds.items()])
        yield FlaggedTail(consumer, len(found[settings.input_topic]))
