"""What a start of a contender has decided, read back from the topics when it is over.

While it runs only the few rejected records are read, or of a query of the user's where its topic ends. What
transactions write has no stamp of when they were committed: there a consumer notes when it gets each record.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from confluent_kafka import Consumer, TopicPartition

from fraud_filter.audit.rows import read_place
from fraud_filter.config import Settings, output_topics
from fraud_filter.generator.sender import HEADER_GENERATED_AT
from fraud_filter.kafka.consumer import find_bounds, find_partitions, has_passed, open_consumer, read_records
from fraud_filter.records import Source, read_source

#: Offsets have less than 40 bits here: partition and offset are one number.
_OFFSET_BITS = 40
_NOT_DUE = -1
_POLL_S = 0.1
#: No row for so long, in seconds, and a query of the user's has written all that it will.
_QUIET_S = 5.0


@dataclass(frozen=True)
class Payments:
    """Payments in arrays, one element each, and of those that were written the time of their first decision.

    `due_us` is when the generator meant to send it (microseconds since 1970), `appended_ms` and `decided_ms` are the
    broker's stamps on the input and on the output topic (milliseconds since 1970), `decided_ms` 0 where nothing was
    written: a payment that is neither flagged nor rejected leaves no trace. With transactions it is when a consumer got
    it.
    """

    due_us: Any
    appended_ms: Any
    decided_ms: Any

    def select(self, mask: Any) -> Payments:
        """The payments for which the array `mask` is true."""
        return Payments(self.due_us[mask], self.appended_ms[mask], self.decided_ms[mask])

    def __len__(self) -> int:
        return len(self.due_us)


class Readback:
    """All records of the topics of a start, read once."""

    def __init__(self, settings: Settings, seen: Sequence[tuple[int, int]] | None = None) -> None:
        """Reads the topics; `seen` are the decisions that a consumer has noted, None where none does.

        Raises:
            FraudFilterError: the broker stopped answering.
        """
        inputs = np.fromiter(_inputs(settings), dtype=(np.int64, 3)).reshape(-1, 3)
        inputs = inputs[inputs[:, 0].argsort()]
        decided = np.fromiter(_decisions(settings) if seen is None else seen, dtype=(np.int64, 2)).reshape(-1, 2)
        decided = decided[np.lexsort((decided[:, 1], decided[:, 0]))]
        places, first = np.unique(decided[:, 0], return_index=True)  # the first of equal ones is the earliest
        first_ms = np.zeros(len(inputs), dtype=np.int64)
        _, here, there = np.intersect1d(inputs[:, 0], places, assume_unique=True, return_indices=True)
        first_ms[here] = decided[first[there], 1]
        self._places = inputs[:, 0]
        self._payments = Payments(inputs[:, 1], inputs[:, 2], first_ms)
        self.first_decision_s = float(decided[:, 1].min()) / 1000 if len(decided) else None

    def between(self, start: Mapping[int, int], end: Mapping[int, int]) -> Payments:
        """The generated payments from the offsets `start` to before `end`, by partition of the input topic."""
        partition, offset = self._places >> _OFFSET_BITS, self._places & (2**_OFFSET_BITS - 1)
        mask = np.zeros(len(self._places), dtype=bool)
        for number, last in end.items():
            mask |= (partition == number) & (offset >= start.get(number, 0)) & (offset < last)
        return self._payments.select(mask & (self._payments.due_us != _NOT_DUE))


def _inputs(settings: Settings) -> Iterator[tuple[int, int, int]]:
    for message in _all_records(settings, "input_topic"):
        due = dict(message.headers() or ()).get(HEADER_GENERATED_AT)
        place = message.partition() << _OFFSET_BITS | message.offset()
        yield place, int(due) if due else _NOT_DUE, message.timestamp()[1]


def _decisions(settings: Settings) -> Iterator[tuple[int, int]]:
    for name in output_topics(settings):
        for message in _all_records(settings, name):
            if (place := _place(settings, message)) is not None:
                yield place, message.timestamp()[1]


def _place(settings: Settings, message: Any) -> int | None:
    """Partition and offset of the payment that a record decides about; None: of this topic there is none."""
    source: Source | None = (read_place if settings.query else read_source)(message.headers())
    if source is None or source.topic != settings.input_topic:
        return None
    return int(source.partition << _OFFSET_BITS | source.offset)


@contextmanager
def note_committed(settings: Settings) -> Iterator[list[tuple[int, int]]]:
    """Meanwhile a consumer reads the output topics, and notes of each decision its payment and when it got it (ms).

    It gets what is committed, as `kafka_isolation_level` says by default.

    Raises:
        UsageError: no broker answers within `kafka_timeout_s` seconds, or a topic is missing.
    """
    seen: list[tuple[int, int]] = []
    ended = threading.Event()
    with open_consumer(settings, fetch_wait_max_ms=500) as consumer:
        found = find_partitions(consumer, settings, output_topics(settings))
        consumer.assign([TopicPartition(topic, number, 0) for topic, numbers in found.items() for number in numbers])

        def read() -> None:
            while not ended.is_set():
                message = consumer.poll(_POLL_S)
                now_ms = int(time.time() * 1000)  # as Kafka's stamps
                place = None if message is None or message.error() else _place(settings, message)
                if place is not None:
                    seen.append((place, now_ms))

        with ThreadPoolExecutor(1) as reading:
            done = reading.submit(read)
            try:
                yield seen
            finally:
                ended.set()
            done.result()


def _all_records(settings: Settings, name: str) -> Iterator[Any]:
    with open_consumer(settings) as consumer:
        ((topic, partitions),) = find_partitions(consumer, settings, (name,)).items()
        bounds = find_bounds(consumer, settings, topic, partitions)
    start = {partition: low for partition, (low, _) in bounds.items()}
    end = {partition: high for partition, (_, high) in bounds.items()}
    for batch in read_records(settings, topic, start, end):
        yield from batch


def is_all_committed(settings: Settings) -> bool:
    """Whether no transaction is open on the output topics: one of a killed writer is, until the broker gives it up.

    Raises:
        FraudFilterError: the broker does not answer.
    """
    with open_consumer(settings) as committed, open_consumer(settings, isolation_level="read_uncommitted") as written:
        found = find_partitions(committed, settings, output_topics(settings))
        return all(
            find_bounds(committed, settings, topic, numbers) == find_bounds(written, settings, topic, numbers)
            for topic, numbers in found.items()
        )


class Tail(ABC):
    """How far a contender is, told by what it writes; asked now and then, it costs next to nothing in between."""

    @abstractmethod
    def has_passed(self, end: Mapping[int, int]) -> bool:
        """Whether all records before the offsets `end` of the input partitions are decided by now."""


class QuietTail(Tail):
    """Looks at the end of the flagged topic, which rows of a query of the user's go to."""

    def __init__(self, rows: Callable[[], int]) -> None:
        self._rows, self._known, self._since = rows, rows(), time.monotonic()

    def has_passed(self, end: Mapping[int, int]) -> bool:  # noqa: ARG002 - which rows are to come nobody knows
        """Whether rows came, and none for some seconds."""
        if (now := self._rows()) != self._known:
            self._known, self._since = now, time.monotonic()
        return self.has_begun() and time.monotonic() - self._since > _QUIET_S

    def has_begun(self) -> bool:
        """Whether any row came."""
        return self._rows() > 0


class RejectedTail(Tail):
    """Follows the rejected topic: the marks among the few records there tell how far a filter is."""

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
def follow(settings: Settings) -> Iterator[Tail]:
    """The outputs of the settings, from their beginning.

    Raises:
        UsageError: no broker answers within `kafka_timeout_s` seconds, or there is no such topic.
    """
    # A long wait between fetches: the broker shall work for the contender.
    with open_consumer(settings, fetch_wait_max_ms=500, fetch_min_bytes=1_000_000) as consumer:
        name = "flagged_topic" if settings.query else "rejected_topic"
        ((topic, partitions),) = find_partitions(consumer, settings, (name,)).items()
        bounds = find_bounds(consumer, settings, topic, partitions)
        if settings.query:
            yield QuietTail(lambda: sum(end for _, end in find_bounds(consumer, settings, topic, partitions).values()))
            return
        consumer.assign([TopicPartition(topic, partition, low) for partition, (low, _) in bounds.items()])
        yield RejectedTail(consumer)
