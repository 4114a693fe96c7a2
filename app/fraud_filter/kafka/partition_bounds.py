"""The first offsets and the ends of all partitions, by two requests a broker, however many partitions there are."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # it is public

from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.refusals import describe_error

#: How long one look waits for a broker that is listed and does not answer; the next look asks again.
_PATIENCE_S = 2.0

Answers = dict[TopicPartition, "Future[Any]"]


def ask_bounds(admin: AdminClient, settings: Settings, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
    """The first retained offset and the end, for a reader with `kafka_isolation_level`, of partitions of the input.

    Those of which no broker tells within 2 seconds are left out.

    Args:
        partitions: such as have a leader; librdkafka waits for the leader of another, and all others with it.

    Raises:
        FraudFilterError: no broker tells of any.
    """
    asked = [TopicPartition(settings.input_topic, number) for number in partitions]
    if not asked:
        raise FraudFilterError(
            f"the offsets of topic {settings.input_topic!r} can't be read: no partition has a leader"
        )
    ends: Any = OffsetSpec  # has no types
    lows, highs = (_ask(admin, settings, asked, spec) for spec in (ends.earliest(), ends.latest()))
    known: dict[int, tuple[int, int]] = {}
    reason = ""
    for partition in asked:
        try:
            low, high = (answers[partition].result(_PATIENCE_S * 2) for answers in (lows, highs))
            if low.offset < 0 or high.offset < 0:  # what librdkafka gives where a broker's answer has none
                reason = "a broker gave none"
            else:
                known[partition.partition] = low.offset, high.offset
        except KafkaException as error:
            reason = describe_error(error)
        except LateError:
            reason = "timed out"
    if not known:
        raise FraudFilterError(f"the offsets of topic {settings.input_topic!r} can't be read: {reason}")
    return known


def _ask(admin: AdminClient, settings: Settings, asked: list[TopicPartition], spec: Any) -> Answers:
    level = IsolationLevel[settings.kafka_isolation_level.upper()]
    return admin.list_offsets(dict.fromkeys(asked, spec), isolation_level=level, request_timeout=_PATIENCE_S)
