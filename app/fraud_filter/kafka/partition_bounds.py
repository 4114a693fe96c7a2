"""The first offsets and the ends of all partitions, by three requests a broker, however many partitions there are."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError
from typing import Any, NamedTuple

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # it is public

from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.refusals import describe_error

#: How long one look waits for a broker that is listed and does not answer; the next look asks again.
_PATIENCE_S = 2.0

Answers = dict[TopicPartition, "Future[Any]"]


class Bounds(NamedTuple):
    """Of a partition: the first retained offset, and the end for a reader with `kafka_isolation_level`.

    `held` offsets lie between that end and the high watermark: an open transaction holds them back from a reader of
    committed records.
    """

    low: int
    end: int
    held: int


def ask_bounds(admin: AdminClient, settings: Settings, partitions: Iterable[int]) -> dict[int, Bounds]:
    """The bounds of partitions of the input.

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
    everything = IsolationLevel.READ_UNCOMMITTED
    answers = [_ask(admin, asked, spec, everything) for spec in (ends.earliest(), ends.latest())]
    found, reason = _take(answers, asked)
    if settings.kafka_isolation_level == "read_committed" and found:
        # Asked afterwards: what is appended meanwhile is not taken for held.
        asked = [partition for partition in asked if partition.partition in found]
        stable, reason = _take([_ask(admin, asked, ends.latest(), IsolationLevel.READ_COMMITTED)], asked)
        found = {number: [*found[number], *end] for number, end in stable.items()}
    if not found:
        raise FraudFilterError(f"the offsets of topic {settings.input_topic!r} can't be read: {reason}")
    return {number: Bounds(at[0], at[-1], max(0, at[1] - at[-1])) for number, at in found.items()}


def _take(answers: list[Answers], asked: list[TopicPartition]) -> tuple[dict[int, list[int]], str]:
    """The offsets of partitions for which all answers came, and why the last one of another partition lacks some."""
    found: dict[int, list[int]] = {}
    reason = ""
    for partition in asked:
        try:
            offsets = [int(each[partition].result(_PATIENCE_S * 2).offset) for each in answers]
            if min(offsets) < 0:  # what librdkafka gives where a broker's answer has none
                reason = "a broker gave none"
            else:
                found[partition.partition] = offsets
        except KafkaException as error:
            reason = describe_error(error)
        except LateError:
            reason = "timed out"
    return found, reason


def _ask(admin: AdminClient, asked: list[TopicPartition], spec: Any, level: IsolationLevel) -> Answers:
    return admin.list_offsets(dict.fromkeys(asked, spec), isolation_level=level, request_timeout=_PATIENCE_S)
