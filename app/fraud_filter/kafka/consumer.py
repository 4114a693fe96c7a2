"""What readers need of Kafka: partitions, offset ranges, records between two offsets, and a mark at the input's end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Event
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.client import librdkafka_config
from fraud_filter.kafka.refusals import NoBrokerError, no_broker, no_topic, unread_offsets
from fraud_filter.text.logs import get_logger

#: Records in one batch of `read_records`, and of `follow_records`.
BATCH_RECORDS, _NEW_RECORDS = 10_000, 1_000
#: By so much the clocks of two brokers may differ, in milliseconds.
CLOCKS_MS = 10_000
#: How long a look for new records waits, in seconds, and so how soon a stop is noticed.
_NEW_S = 0.1
#: How often partitions that were added to followed topics are looked for, in seconds.
_REFRESH_S = 30.0

#: librdkafka fetches ahead; without a limit that is 64 MB for each of the reader's partitions.
_FETCH_AHEAD_KB = 16_384
#: A fetch for one record of a partition: what is larger is given whole all the same.
_FIRST_BYTES = 65_536
_log = get_logger(__name__)


@contextmanager
def open_consumer(settings: Settings, **extra: Any) -> Iterator[Consumer]:
    """A consumer that belongs to no group: it commits nothing and takes the partitions that it is given.

    Args:
        extra: further librdkafka settings, `_` for `.`.
    """
    own: dict[str, Any] = {
        "group_id": "fraud-filter-reader",  # librdkafka wants a name; nothing is committed under it
        "enable_auto_commit": False,
        "enable_auto_offset_store": False,
        "allow_auto_create_topics": False,
        "auto_offset_reset": "error",
        "isolation_level": settings.kafka_isolation_level,  # of the ends of partitions, too
    }
    consumer = Consumer(librdkafka_config(settings, **(own | extra)))
    try:
        yield consumer
    finally:
        consumer.close()


def find_partitions(consumer: Consumer, settings: Settings, names: Sequence[str]) -> dict[str, list[int]]:
    """The partitions of the topics that the settings `names` (such as "flagged_topic") name, by topic.

    Raises:
        NoBrokerError: no broker answers within `kafka_timeout_s` seconds.
        UsageError: a topic does not exist.
    """
    try:
        known = consumer.list_topics(timeout=settings.kafka_timeout_s).topics
    except KafkaException as error:
        raise no_broker(settings, error) from None
    found: dict[str, list[int]] = {}
    for name in names:
        topic = getattr(settings, name)
        if topic not in known or not known[topic].partitions:
            raise no_topic(settings, name)
        found[topic] = sorted(known[topic].partitions)
    return found


def find_bounds(
    consumer: Consumer, settings: Settings, topic: str, partitions: Sequence[int]
) -> dict[int, tuple[int, int]]:
    """The first retained offset and the end (the next record's offset) of each partition.

    Raises:
        FraudFilterError: the broker does not answer within `kafka_timeout_s` seconds.
    """

    def look_again(_: object) -> None:
        """The client keeps what it was told for 15 minutes, also by a broker that had not heard of the topic yet."""
        with suppress(KafkaException):
            consumer.list_topics(topic, timeout=settings.kafka_timeout_s)

    retrying = Retrying(
        retry=retry_if_exception_type(KafkaException),
        stop=stop_after_delay(settings.kafka_timeout_s),
        wait=wait_fixed(0.1),
        before_sleep=look_again,
        reraise=True,
    )

    def ask(partition: int) -> tuple[int, int]:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=settings.kafka_timeout_s)
        return int(low), int(high)

    try:
        return {partition: retrying(ask, partition) for partition in partitions}
    except KafkaException as error:
        raise unread_offsets(settings, topic, error) from None


def find_input_bounds(consumer: Consumer, settings: Settings) -> dict[int, tuple[int, int]]:
    """The bounds of the input topic's partitions as they are now, added ones included.

    Raises:
        NoBrokerError: no broker answers within `kafka_timeout_s` seconds.
        UsageError: there is no such topic.
        FraudFilterError: the broker stops answering.
    """
    partitions = find_partitions(consumer, settings, ["input_topic"])[settings.input_topic]
    return find_bounds(consumer, settings, settings.input_topic, partitions)


def first_since(settings: Settings, times: Mapping[int, int]) -> dict[int, int]:
    """The first offset of the input's records that were appended at a time (ms since 1970) or later, by partition.

    Partitions without such a record are left out.

    Raises:
        FraudFilterError: the broker does not answer within `kafka_timeout_s` seconds.
    """
    topic = settings.input_topic
    wanted = [TopicPartition(topic, *place) for place in times.items()]
    if not wanted:
        return {}
    try:
        with open_consumer(settings) as consumer:
            found = consumer.offsets_for_times(wanted, timeout=settings.kafka_timeout_s)
    except KafkaException as error:
        raise unread_offsets(settings, topic, error) from None
    return {each.partition: each.offset for each in found if each.error is None and each.offset >= 0}


def reach_back(settings: Settings, at: Mapping[int, int], times: Mapping[int, int], reach_ms: int) -> dict[int, int]:
    """Where the records of the input begin that were appended up to `reach_ms` before others, by partition.

    Args:
        at: the offset of those others; it is the result where there is no earlier record.
        times: when those were appended, in ms since 1970; left out where that is not known.

    Raises:
        FraudFilterError: as `first_since`.
    """
    found = first_since(settings, {number: max(0, time_ms - reach_ms) for number, time_ms in times.items()})
    return {number: min(found.get(number, offset), offset) for number, offset in at.items()}


def first_offsets(settings: Settings, bounds: Mapping[int, tuple[int, int]]) -> dict[int, int]:
    """Where a query without a checkpoint begins, by partition: `starting_offsets` within what the topic holds.

    Args:
        bounds: first and end offset by partition, as `find_bounds` gives them.
    """
    named = {"earliest": "-2", "latest": "-1"}.get(settings.starting_offsets)
    given = {} if named else json.loads(settings.starting_offsets).get(settings.input_topic, {})
    wanted = {partition: int(named or given.get(str(partition), -2)) for partition in bounds}
    return {
        partition: {-2: low, -1: high}.get(wanted[partition], wanted[partition])
        for partition, (low, high) in bounds.items()
    }


def read_records(
    settings: Settings, topic: str, start: Mapping[int, int], end: Mapping[int, int]
) -> Iterator[list[Any]]:
    """Batches of the records (confluent_kafka messages) of each partition from offset `start` to before `end`.

    Offsets may have gaps (compaction, transaction markers): a partition is done when its reader stands at `end`.

    Raises:
        FraudFilterError: the broker stopped answering, or the records were removed while they were read.
    """
    left = {partition for partition in end if start[partition] < end[partition]}
    options = {
        "enable_partition_eof": True,
        "queued_max_messages_kbytes": _FETCH_AHEAD_KB,
    }
    with open_consumer(settings, **options) as consumer:
        consumer.assign([TopicPartition(topic, partition, start[partition]) for partition in sorted(left)])
        heard = time.monotonic()
        while left:
            messages = consumer.consume(BATCH_RECORDS, timeout=0.5)
            if messages:
                heard = time.monotonic()
            elif time.monotonic() - heard > settings.kafka_timeout_s:
                raise FraudFilterError(
                    f"topic {topic!r}: the broker gave no record for {settings.kafka_timeout_s:g} s, partitions "
                    f"{sorted(left)} are not read to their end"
                )
            batch, done = _sort_out(messages, topic, left, end)
            if done:
                consumer.incremental_unassign([TopicPartition(topic, partition) for partition in done])
                left -= done
            if batch:
                yield batch


def follow_records(
    consumer: Consumer, settings: Settings, names: Sequence[str], start: Mapping[str, Mapping[int, int]], stop: Event
) -> Iterator[list[Any]]:
    """Batches of records as they come, until `stop` is set; added partitions are read from their beginning.

    Args:
        consumer: one with auto_offset_reset=earliest: what is removed while it is read, by retention, is passed over.
        names: settings that name the topics, such as "flagged_topic".
        start: the first offset by partition, by topic.

    Raises:
        FraudFilterError: a topic can't be read any longer, or is gone.
    """
    held = {(topic, number) for topic, offsets in start.items() for number in offsets}
    consumer.assign([TopicPartition(topic, number, start[topic][number]) for topic, number in sorted(held)])
    refresh_at = time.monotonic() + _REFRESH_S
    while not stop.is_set():
        batch = []
        for message in consumer.consume(_NEW_RECORDS, timeout=_NEW_S):
            error = message.error()
            if error is None:
                batch.append(message)
            else:
                require_readable(message)
        if batch:
            yield batch
        if time.monotonic() >= refresh_at:
            refresh_at = time.monotonic() + _REFRESH_S
            try:
                topics = find_partitions(consumer, settings, names)
            except NoBrokerError as error:  # librdkafka goes on trying, and so do we
                _log.warning("topics_without_broker", reason=error)
                continue
            added = {(topic, number) for topic, numbers in topics.items() for number in numbers} - held
            if added:
                consumer.incremental_assign([TopicPartition(topic, number, 0) for topic, number in sorted(added)])
                held |= added


def require_readable(message: Any) -> None:
    """Does nothing at an error of which librdkafka goes on by itself.

    Args:
        message: one that has an error.

    Raises:
        FraudFilterError: its topic can't be read any longer.
    """
    error = message.error()
    if not error.retriable() and error.code() != KafkaError._ALL_BROKERS_DOWN:
        raise FraudFilterError(f"topic {message.topic()!r} can't be read: {error.str()}")


def first_times_ms(settings: Settings, at: Mapping[int, int], ends: Mapping[int, int]) -> dict[int, int]:
    """The append time (ms since 1970) of the input's first record from `at` on, by partition.

    Partitions that have none before `ends` are left out.

    Raises:
        FraudFilterError: the broker stopped answering, or the records were removed.
    """
    times: dict[int, int] = {}
    left = {number for number, offset in at.items() if offset < ends[number]}
    if not left:
        return times
    until = time.monotonic() + settings.kafka_timeout_s
    with open_consumer(settings, enable_partition_eof=True, fetch_message_max_bytes=_FIRST_BYTES) as consumer:
        consumer.assign([TopicPartition(settings.input_topic, number, at[number]) for number in sorted(left)])
        while left:
            message = consumer.poll(0.5)
            if message is None:
                if time.monotonic() > until:
                    raise FraudFilterError(f"topic {settings.input_topic!r}: partitions {sorted(left)} can't be read")
                continue
            batch, done = _sort_out([message], settings.input_topic, left, ends)
            times |= {one.partition(): int(one.timestamp()[1]) for one in batch}
            left -= done | set(times)
    return times


def _sort_out(messages: list[Any], topic: str, left: set[int], end: Mapping[int, int]) -> tuple[list[Any], set[int]]:
    """The records before the end, and the partitions that have reached it."""
    batch: list[Any] = []
    done: set[int] = set()
    for message in messages:
        error, partition = message.error(), message.partition()
        if error is None:
            if partition in left and message.offset() < end[partition]:
                batch.append(message)
            if partition in left and message.offset() >= end[partition] - 1:
                done.add(partition)
        elif error.code() == KafkaError._PARTITION_EOF:
            done |= {partition} & left
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise FraudFilterError(f"topic {topic!r}, partition {partition}: records were removed while they were read")
        elif not error.retriable():
            raise FraudFilterError(f"topic {topic!r}, partition {partition}: {error.str()}")
    return batch, done


def has_passed(newest: Mapping[int, int], offsets: Mapping[int, int]) -> bool:
    """Whether the `newest` offset is at or after each of the `offsets`, by partition."""
    return all(newest.get(partition, -1) >= offset for partition, offset in offsets.items())
