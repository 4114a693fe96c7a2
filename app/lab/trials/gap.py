"""Gaps between decisions, by the broker's times."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from fraud_filter.config import Settings
from fraud_filter.kafka.consumer import find_bounds, find_partitions, open_consumer
from fraud_filter.records import read_source
from lab.harness.waiting import TooLateError

_POLL_S = 0.1


@dataclass(frozen=True)
class Gap:
    """How long nothing was decided, and until decisions came in every partition, as `Outcome` has them; in seconds."""

    seconds: float
    recovery_s: float
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class FlaggedTail:
    """The flagged topic from its end on; `open_tail` gives one."""

    consumer: Consumer
    partitions: int
    #: When each decision was appended, in seconds since 1970, by partition of the payment.
    _appended: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    #: When the first one was appended about a payment that came after the awaited moment.
    _first: dict[int, float] = field(default_factory=dict)

    def await_fresh(self, at: float, timeout_s: float, look: Callable[[], None] = lambda: None) -> Gap:
        """Reads on until each input partition has a decision about a payment that was appended after `at`.

        Args:
            at: the disturbance, in seconds since 1970; broker and we have one clock.
            timeout_s: the longest wait, in seconds.
            look: called now and then; raises when waiting is of no use any more.

        Raises:
            TooLateError: they did not come in time.
        """
        self._first.clear()
        end = time.monotonic() + timeout_s
        while len(self._first) < self.partitions:
            if time.monotonic() > end:
                raise TooLateError(f"no decision about a payment that came after it within {timeout_s:g} s")
            for message in self.consumer.consume(1000, timeout=_POLL_S):
                self._take(message, at)
            look()
        found = self._first.values()
        return Gap(round(min(found) - at, 3), round(max(found) - at, 3))

    @property
    def longest(self) -> Gap:
        """The longest times between two decisions that were read, and between two about payments of one partition."""
        together = [moment for each in self._appended.values() for moment in each]
        return Gap(_longest([together]), _longest(self._appended.values()))

    def _take(self, message: Any, at: float) -> None:
        source = read_source(message.headers()) if message.error() is None else None
        if source is None:
            return
        appended = message.timestamp()[1] / 1000
        self._appended[source.partition].append(appended)
        if source.timestamp_ms / 1000 > at:
            self._first.setdefault(source.partition, appended)


def _longest(series: Iterable[Sequence[float]]) -> float:
    steps = (later - earlier for each in series for earlier, later in pairwise(sorted(each)))
    return round(max(steps, default=0.0), 3)


@contextmanager
def open_tail(settings: Settings) -> Iterator[FlaggedTail]:
    """Reads the flagged topic from now on."""
    with open_consumer(settings) as consumer:
        found = find_partitions(consumer, settings, ["input_topic", "flagged_topic"])
        topic = settings.flagged_topic
        bounds = find_bounds(consumer, settings, topic, found[topic])
        consumer.assign([TopicPartition(topic, number, end) for number, (_, end) in bounds.items()])
        yield FlaggedTail(consumer, len(found[settings.input_topic]))
