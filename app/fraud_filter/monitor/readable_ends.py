"""Where a partition ends for a reader: offsets that hold no record it is given are no lag.

Marks of transactions and aborted records take offsets (Kafka's documentation, "Transactions"). A query that commits the
offset after its last record, as continuous and real-time mode do, stays before those at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from fraud_filter.checkpoint.progress import Offsets
from fraud_filter.config import Settings

#: Settings of a consumer that is asked for single records.
CONSUMER = {
    "enable_partition_eof": True,
    "fetch_wait_max_ms": 50,
    "fetch_message_max_bytes": 65_536,
    "queued_max_messages_kbytes": 1_024,
}
#: How long one look waits for answers; what comes later is there at the next one.
_WAIT_S = 0.2
_MESSAGES = 1_000


@dataclass
class _Gap:
    """Nothing to read lies from `committed` to before `clear_to`; `is_over`: a record follows there."""

    committed: int
    clear_to: int
    is_over: bool = False


class ReadableEnds:
    """Looks, from the committed offset on, for the first record of partitions whose commits rest."""

    def __init__(self, consumer: Consumer, settings: Settings) -> None:
        """`consumer`: one with the settings `CONSUMER`, for this alone."""
        self._consumer: Any = consumer
        self._topic = settings.input_topic
        self._gaps: dict[int, _Gap] = {}
        self._asked: set[int] = set()

    def look(self, committed: Mapping[int, int], latest: Mapping[int, int]) -> Offsets:
        """The ends `latest` by partition, and the committed offset where no record follows it.

        A partition is asked once after each commit that rests for a look, and again while nothing but gaps comes.
        """
        self._forget(committed, latest)
        self._ask(number for number, gap in self._gaps.items() if not gap.is_over and gap.clear_to < latest[number])
        for number, offset in committed.items():
            if number not in self._gaps and offset < latest.get(number, offset):
                self._gaps[number] = _Gap(offset, offset)  # it may move by itself: the next look asks
        clear = {number for number, gap in self._gaps.items() if not gap.is_over and gap.clear_to >= latest[number]}
        return {number: committed[number] if number in clear else end for number, end in latest.items()}

    def _forget(self, committed: Mapping[int, int], latest: Mapping[int, int]) -> None:
        gone = {n for n, gap in self._gaps.items() if committed.get(n) != gap.committed or n not in latest}
        for number in gone:
            del self._gaps[number]
        self._leave(gone)

    def _ask(self, numbers: Iterable[int]) -> None:
        new = set(numbers) - self._asked
        if new:
            places = [TopicPartition(self._topic, number, self._gaps[number].clear_to) for number in new]
            self._consumer.incremental_assign(places)
            self._asked |= new
        if not self._asked:
            return
        answered = set()
        for message in self._consumer.consume(_MESSAGES, timeout=_WAIT_S):
            number, error = message.partition(), message.error()
            if number not in self._asked or number in answered:
                continue
            if error is None or error.code() == KafkaError._AUTO_OFFSET_RESET:  # it is there, or is gone already
                self._gaps[number].is_over = True
            elif error.code() == KafkaError._PARTITION_EOF:
                self._gaps[number].clear_to = message.offset()
            else:
                continue
            answered.add(number)
        self._leave(answered)

    def _leave(self, numbers: set[int]) -> None:
        asked = numbers & self._asked
        if asked:
            self._consumer.incremental_unassign([TopicPartition(self._topic, number) for number in asked])
            self._asked -= asked
