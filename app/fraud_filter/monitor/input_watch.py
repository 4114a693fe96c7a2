"""The input topic as the monitor sees it each second: which topic it is, up to where it can be read, what keeps the
query from reading, and what was removed unread.

Marks of transactions and aborted records take offsets (Kafka's documentation, "Transactions"). A query that commits the
offset after its last record, as continuous and real-time mode do, stays before those at the end: offsets that hold no
record it is given are no lag.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

from fraud_filter.checkpoint.files import CheckpointError, CheckpointFiles
from fraud_filter.checkpoint.notes import Loss, add_losses
from fraud_filter.checkpoint.progress import Offsets
from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.admin import Bounds, ask_bounds, find_input, open_admin
from fraud_filter.kafka.consumer import open_consumer
from fraud_filter.text.logs import get_logger

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


_log = get_logger(__name__)


@dataclass(frozen=True)
class Seen:
    """One look: the topic's id and its partitions; of those that a broker told of, `Bounds` and `ReadableEnds`."""

    topic_id: str
    partitions: frozenset[int]
    bounds: dict[int, Bounds]
    readable: Offsets

    @property
    def latest(self) -> Offsets:
        """The ends."""
        return {number: bounds.end for number, bounds in self.bounds.items()}


class InputWatch:
    """Looks at the input topic; `watch_input` gives one. For one thread."""

    def __init__(self, settings: Settings, admin: AdminClient, ends: ReadableEnds) -> None:
        self._settings = settings
        self._admin = admin
        self._spare: AdminClient | None = None
        self._ends = ends
        self._unknown: list[int] = []

    def look(self, committed: Mapping[int, int]) -> Seen | None:
        """The input as it is, given the committed offsets; None while no broker answers."""
        settings = self._settings
        if settings.source != "kafka":
            return Seen("", frozenset(), {}, {})
        try:
            topic = find_input(self._admin, settings, self._spare)
            bounds = self._ask(topic.led)
        except FraudFilterError as error:
            _log.warning("monitor_failed", query=settings.query_name, error=error)
            self._renew()
            return None
        if set(topic.partitions) - bounds.keys():
            self._renew()
        self._tell(sorted(set(topic.partitions) - bounds.keys()))
        latest = {number: each.end for number, each in bounds.items()}
        return Seen(topic.id, frozenset(topic.partitions), bounds, self._ends.look(committed, latest))

    def _ask(self, led: list[int]) -> dict[int, Bounds]:
        try:
            return ask_bounds(self._admin, self._settings, led)
        except FraudFilterError:
            if not self._spare:
                raise
            self._admin, self._spare = self._spare, None
            return ask_bounds(self._admin, self._settings, led)

    def _renew(self) -> None:
        """A new client: librdkafka may never find a broker again that had gone.

        The one before it stays: a new one finds no broker where those that the settings name are gone.
        """
        self._spare = self._spare or self._admin
        self._admin = open_admin(self._settings)

    def _tell(self, unknown: list[int]) -> None:
        if unknown != self._unknown:
            self._unknown = unknown
            _log.warning("partitions_unknown", topic=self._settings.input_topic, partitions=unknown)


@contextmanager
def watch_input(settings: Settings) -> Iterator[InputWatch]:
    """The clients of an `InputWatch`, while the block runs."""
    with open_consumer(settings, **CONSUMER) as reader:
        yield InputWatch(settings, open_admin(settings), ReadableEnds(reader, settings))


@dataclass
class Waits:
    """Since when (seconds since 1970) each wait lasts; `look` keeps it.

    A partition is held since its end rests before records of an open transaction; where the end moves on, another
    transaction begins to hold it.
    """

    held: dict[int, float] = field(default_factory=dict)
    unknown: dict[int, float] = field(default_factory=dict)
    #: Since when nothing at all could be read of the input.
    silent: float | None = None
    _ends: Offsets = field(default_factory=dict)

    def look(self, seen: Seen | None, now: float) -> None:
        """One look at the input; None: nothing could be read of it, and what was known before stays."""
        if seen is None:
            self.silent = self.silent or now
            return
        self.silent = None
        held = {n: bounds.end for n, bounds in seen.bounds.items() if bounds.held}
        same = {n: since for n, since in self.held.items() if held.get(n) == self._ends.get(n)}
        self.held, self._ends = {n: same.get(n, now) for n in held}, held
        self.unknown = {n: self.unknown.get(n, now) for n in seen.partitions - seen.bounds.keys()}

    def trouble(self, now: float, patience_s: float) -> str:
        """What has lasted longer than `patience_s` seconds, as a sentence without an end; else ""."""
        if self.silent is not None and now - self.silent > patience_s:
            return f"the ends of the input could not be read for {now - self.silent:.0f} s"
        for waits, what in ((self.unknown, "no broker tells the end of"), (self.held, "an open transaction holds")):
            if old := sorted(number for number, since in waits.items() if since < now - patience_s):
                names = ", ".join(str(number) for number in old)
                seconds = now - min(waits[number] for number in old)
                return f"{what} {'partition' if len(old) == 1 else 'partitions'} {names}, for {seconds:.0f} s by now"
        return ""


class Removals:
    """Finds them in one thread, each once, and has another, which may wait for Java, note them in the checkpoint."""

    def __init__(self, settings: Settings) -> None:
        self._topic = settings.input_topic
        self._known_to: dict[tuple[str, int], int] = {}
        self._unnoted: queue.SimpleQueue[Loss] = queue.SimpleQueue()
        self._kept: list[Loss] = []

    def count(self, losses: list[Loss]) -> int:
        """How many offsets of these losses, which are noted already, were not counted before."""
        return sum(loss.end - loss.start for loss in self._learn(losses))

    def look(self, topic_id: str, committed: Mapping[int, int], bounds: Mapping[int, tuple[int, int]]) -> int:
        """How many more are gone, given the committed offsets and the first and the end of each partition."""
        now = time.time()
        gone = [
            Loss(topic_id, number, offset, bounds[number][0], now)
            for number, offset in sorted(committed.items())
            if number in bounds and offset < bounds[number][0]
        ]
        found = self._learn(gone)
        lost = sum(loss.end - loss.start for loss in found)
        if found:
            told = ", ".join(f"partition {loss.partition} offsets {loss.start} to {loss.end - 1}" for loss in found)
            _log.warning("data_lost", topic=self._topic, records=lost, lost=told)
        for loss in found:
            self._unnoted.put(loss)
        return lost

    def _learn(self, losses: list[Loss]) -> list[Loss]:
        """What of them was not known; offsets of a topic only grow."""
        new = []
        for loss in losses:
            place = loss.topic_id, loss.partition
            known_to = self._known_to.get(place, 0)
            if loss.end > known_to:
                new.append(replace(loss, start=max(loss.start, known_to)))
                self._known_to[place] = loss.end
        return new

    def note(self, files: CheckpointFiles) -> None:
        """Notes in the checkpoint what was found since the last call; tries again at the next one where that fails."""
        while not self._unnoted.empty():
            self._kept.append(self._unnoted.get())
        if self._kept:
            try:
                add_losses(files, self._kept)
            except CheckpointError as error:
                _log.warning("losses_not_noted", reason=error)
            else:
                self._kept = []
