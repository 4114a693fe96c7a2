"""Which payments the output topics hold decisions of: a start reads them, and the query writes none of them again.

The outputs themselves are the log of what is done. Every decision names its payment by topic id, partition and offset,
so that those about payments behind the last commit can be told from all others. No decision is appended before its
payment, and brokers stamp both: so it is enough to read the outputs from the time of the first payment that is not
committed.

What a killed process sent may still be on its way. So the outputs are read until no decision of ours has come for
`QUIET_S` seconds: that is the bound on what a broker may take to append what has reached it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from pyroaring import BitMap64

from fraud_filter import schema as layout
from fraud_filter.config import Settings
from fraud_filter.config.outputs import output_topics
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.kafka.admin import require_append_time
from fraud_filter.kafka.consumer import (
    CLOCKS_MS,
    find_bounds,
    find_input_bounds,
    find_partitions,
    first_times_ms,
    open_consumer,
    require_readable,
)
from fraud_filter.kafka.refusals import NoBrokerError, no_broker, unread_offsets
from fraud_filter.records import decision_id, decisions_between
from fraud_filter.supervisor.signals import Stop
from fraud_filter.text.logs import get_logger

_log = get_logger(__name__)
QUIET_S = 0.2
#: Outputs that do not fall quiet, as another writer of ours goes on, hold a start up for so many seconds at most; and
#: where it goes on in every partition, so that no payment waits: executors whose driver was cut off end within 30.
_NOISY_S, _DECIDED_S = 10.0, 45.0
#: A partition without a new decision for so many seconds waits.
_WAITS_S = 2.0
_POLL_S, _LOOK_S = 0.05, 0.01
#: Larger batches wait for their last record.
_BATCH_RECORDS = 500

Place = tuple[str, int]


class WrittenDecisions:
    """A reader of the output topics in a thread of its own, from the decisions on what is not committed on.

    Memory: about a bit for each payment that is not committed.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        #: Whether decisions name payments that will have the same offsets after a restart.
        self._is_known = settings.source == "kafka" and settings.sink == "kafka"
        self._topic_id, self._since = "", dict[int, int]()
        self._reader: _Reader | None = None

    def follow(self, topic_id: str, at: Mapping[int, int]) -> None:
        """Begins to read the decisions about payments from the committed offsets `at` on, by partition.

        Where it has begun before, what is committed by now is forgotten.

        Raises:
            UsageError: a topic does not exist, or this user may not read it.
            NoBrokerError: no broker answers.
        """
        if not self._is_known:
            return
        is_behind = any(at.get(number, 0) < since for number, since in self._since.items())
        if self._reader and self._reader.error is None and topic_id == self._topic_id and not is_behind:
            self._reader.forget(at)
            self._since = dict(at)
            return
        self.close()
        try:
            outputs = _find_outputs(self._settings)
            require_append_time(self._settings, [getattr(self._settings, name) for name in ("input_topic", *outputs)])
        except NoBrokerError:
            raise  # it says nothing of timestamps
        except UsageError as error:
            _log.warning("decisions_may_repeat", query=self._settings.query_name, reason=error)
            return
        self._topic_id, self._since = topic_id, dict(at)
        self._reader = _Reader(self._settings, topic_id, at, outputs)

    def settle(self, stop: Stop) -> BitMap64:
        """The decisions that the outputs hold once they are quiet, as `decision_id` of their payments.

        Raises:
            UsageError: this user may not read the outputs.
            FraudFilterError: the broker does not answer.
        """
        if not self._reader:
            return BitMap64()
        began = time.monotonic()
        written = self._reader.settle(stop)
        seconds = round(time.monotonic() - began, 2)
        _log.info("outputs_read", query=self._settings.query_name, decisions=len(written), seconds=seconds)
        return written

    def close(self) -> None:
        """Ends the reading; nothing is known any more."""
        if self._reader:
            self._reader.close()
        self._reader, self._since = None, {}


def _find_outputs(settings: Settings) -> list[str]:
    """The settings that name the outputs: with `emit=flagged` also that of approvals, if this user sees it there."""
    written = output_topics(settings)
    if settings.emit == "all" or settings.query:
        return written
    try:
        with open_consumer(settings) as consumer:
            find_partitions(consumer, settings, ["approved_topic"])
    except NoBrokerError:
        raise
    except UsageError:
        return written
    return [*written, "approved_topic"]


def _find_start(settings: Settings, outputs: list[str], at: Mapping[int, int]) -> dict[Place, int]:
    """Where in the outputs no decision on a payment from `at` on can lie before."""
    with open_consumer(settings) as consumer:
        # In this order: a payment that is appended after the look at the input is decided after that at the outputs.
        start = _ends(consumer, settings, outputs)
        ends = {number: end for number, (_, end) in find_input_bounds(consumer, settings).items()}
        unread = {number: at.get(number, 0) for number, end in ends.items() if at.get(number, 0) < end}
        times = first_times_ms(settings, unread, ends)
        if not times:
            return start
        since_ms = max(0, min(times.values()) - CLOCKS_MS)
        wanted = [TopicPartition(topic, number, since_ms) for topic, number in start]
        try:
            found = consumer.offsets_for_times(wanted, timeout=settings.kafka_timeout_s)
        except KafkaException as error:
            raise unread_offsets(settings, settings.flagged_topic, error) from None
        return start | {(one.topic, one.partition): one.offset for one in found if not one.error and one.offset >= 0}


def _ends(consumer: Consumer, settings: Settings, outputs: list[str]) -> dict[Place, int]:
    ends = {}
    for topic, numbers in find_partitions(consumer, settings, outputs).items():
        for number, (_, end) in find_bounds(consumer, settings, topic, numbers).items():
            ends[topic, number] = end
    return ends


class _Reader:
    """Reads the outputs, named by their settings, until it is closed."""

    def __init__(self, settings: Settings, topic_id: str, since: Mapping[int, int], outputs: list[str]) -> None:
        self._settings, self._outputs = settings, outputs
        start = _find_start(settings, outputs, since)
        self._topic, self._topic_id = settings.input_topic.encode(), topic_id.encode()
        self._since, self._newest = dict(since), dict[int, int]()
        self._ids = BitMap64()
        #: Where the reader stands: nowhere until the broker has answered it, as this user may have no right to read.
        self._positions = dict.fromkeys(start, -1)
        #: When the last decision of ours came, and the last one that went further, by partition of the input.
        self._heard, self._advanced = 0.0, dict[int, float]()
        self.error: FraudFilterError | None = None
        self._lock, self._stopping = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(start,), name="written-decisions", daemon=True)
        self._thread.start()

    def forget(self, before: Mapping[int, int]) -> None:
        """Drops what is about payments before these offsets, by partition."""
        with self._lock:
            self._since = dict(before)
            start = {number: before.get(number, 0) for number in self._newest}
            self._ids &= decisions_between(start, {number: newest + 1 for number, newest in self._newest.items()})

    def settle(self, stop: Stop) -> BitMap64:
        """The payments decided, once all that is there was read and no further decision came for a while."""
        settings, asked = self._settings, time.monotonic()
        with open_consumer(settings) as consumer:
            ends = _ends(consumer, settings, self._outputs)
        moved, before, reached = asked, 0, 0.0
        while not stop.requested:
            if self.error:
                raise self.error
            with self._lock:
                left = sum(max(0, end - self._positions.get(place, -1)) for place, end in ends.items())
                heard = self._heard
            now = time.monotonic()
            if left != before:
                moved, before = now, left
            if left and now - moved > settings.kafka_timeout_s:
                raise no_broker(settings, TimeoutError("the outputs gave no record"))
            reached = reached or (0.0 if left else now)
            if reached and now - max(heard, asked) > QUIET_S:
                break
            if reached and now - reached > (_NOISY_S if self._waits(now) else _DECIDED_S):
                _log.warning("outputs_not_quiet", query=settings.query_name, seconds=round(now - reached, 1))
                break
            stop.event.wait(_LOOK_S)
        with self._lock:
            return BitMap64(self._ids)

    def _waits(self, now: float) -> bool:
        """Whether in some partition nothing new is decided at the moment."""
        with self._lock:
            newest = [self._advanced.get(number, 0.0) for number in self._since]
        return not newest or now - min(newest) > _WAITS_S

    def close(self) -> None:
        """Ends the reading."""
        self._stopping.set()
        self._thread.join()

    def _run(self, start: Mapping[Place, int]) -> None:
        options: dict[str, Any] = {
            "auto_offset_reset": "earliest",  # what retention has removed meanwhile is passed over
            "enable_partition_eof": True,
            "fetch_wait_max_ms": round(_POLL_S * 1000),
            # A full queue makes the library wait a second by default.
            "fetch_queue_backoff_ms": 5,
            "queued_min_messages": 100_000,
        }
        try:
            with open_consumer(self._settings, **options) as consumer:
                consumer.assign([TopicPartition(*place, offset) for place, offset in start.items()])
                while not self._stopping.is_set():
                    self._take(consumer.consume(_BATCH_RECORDS, timeout=_POLL_S))
        except FraudFilterError as error:
            self.error = error
        except KafkaException as error:
            self.error = unread_offsets(self._settings, self._settings.flagged_topic, error)

    def _take(self, messages: list[Any]) -> None:
        ids: list[int] = []
        with self._lock:
            for message in messages:
                place = message.topic(), message.partition()
                error = message.error()
                if error is None:
                    self._positions[place] = message.offset() + 1
                    self._note(message.headers(), ids)
                elif error.code() == KafkaError._PARTITION_EOF:
                    self._positions[place] = max(self._positions[place], message.offset())
                elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    raise UsageError(
                        f"topic {place[0]!r} can't be read: {error.str()}; a start looks there for what is decided: "
                        "let the filter's user READ it, as kafka/access.yml says"
                    )
                else:
                    require_readable(message)
            if ids:
                self._ids.update(ids)
                self._heard = time.monotonic()

    def _note(self, headers: list[tuple[str, bytes]] | None, ids: list[int]) -> None:
        found = dict(headers or ())
        if found.get(layout.HEADER_TOPIC) != self._topic or found.get(layout.HEADER_TOPIC_ID, b"") != self._topic_id:
            return
        try:
            number, offset = int(found[layout.HEADER_PARTITION]), int(found[layout.HEADER_OFFSET])
            one = decision_id(number, offset)
        except (KeyError, ValueError, TypeError):  # nothing that a filter writes
            return
        if offset >= self._since.get(number, 0):
            ids.append(one)
            if offset >= self._newest.get(number, 0):
                self._newest[number], self._advanced[number] = offset, time.monotonic()
