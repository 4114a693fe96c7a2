"""The input topic's offsets, and waiting until a filter has read all that it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer

from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.client import librdkafka_config
from fraud_filter.kafka.consumer import find_input_bounds, open_consumer
from fraud_filter.kafka.refusals import describe_error
from lab.harness.processes import Child
from lab.harness.waiting import wait_until

#: No payment, hence rejected: its place on the rejected topic says that all before it were read.
END_MARK = b"end of a measured run"
#: Records that wait for the broker; librdkafka holds 100,000 at most.
_MOST_HELD = 50_000
_POLL_S = 0.1


class InputTopic:
    """Offsets of the input topic, by partition; `open_input` gives one."""

    def __init__(self, settings: Settings, consumer: Consumer) -> None:
        self._settings = settings
        self._consumer = consumer

    def end_offsets(self) -> dict[int, int]:
        """The offset that each partition's next record will get."""
        bounds = find_input_bounds(self._consumer, self._settings)
        return {partition: end for partition, (_, end) in bounds.items()}

    def mark_end(self, mark: bytes) -> None:
        """Appends a record to each partition that the filter must reject: the sign that it has read so far."""
        write_input(self._settings, ({"value": mark, "partition": partition} for partition in self.end_offsets()))


@contextmanager
def open_input(settings: Settings) -> Iterator[InputTopic]:
    """The input topic of the settings."""
    with open_consumer(settings) as consumer:
        yield InputTopic(settings, consumer)


def write_input(settings: Settings, records: Iterable[Mapping[str, Any]]) -> None:
    """Writes records, each as `Producer.produce` takes it, to the input topic.

    Raises:
        FraudFilterError: the broker does not take them.
    """
    topic, timeout_s = settings.input_topic, settings.kafka_timeout_s
    producer = Producer(librdkafka_config(settings))
    try:
        for record in records:
            while len(producer) >= _MOST_HELD:
                producer.poll(_POLL_S)
            producer.produce(topic, **record)
        left = producer.flush(timeout_s)
    except KafkaException as error:
        raise FraudFilterError(f"topic {topic!r} can't be written to: {describe_error(error)}") from None
    if left:
        raise FraudFilterError(f"topic {topic!r} did not take {left} records within {timeout_s:g} s")


def records_between(start: Mapping[int, int], end: Mapping[int, int]) -> int:
    """How many records lie from the offsets `start` to before the offsets `end`, over all partitions."""
    return sum(max(0, offset - start.get(partition, 0)) for partition, offset in end.items())


def drain(
    topic: InputTopic,
    has_passed: Callable[[Mapping[int, int]], bool],
    timeout_s: float,
    otherwise: str,
    programs: Sequence[Child],
    mark: bytes | None = END_MARK,
) -> dict[int, int]:
    """Waits for the decision on a mark behind the topic's last payment; returns the offsets of the mark.

    Payments that are not flagged leave no trace, but the mark after them comes out on the rejected topic.

    Args:
        has_passed: whether a decision about a record at or after these input offsets has come out.
        timeout_s, otherwise, programs: as `wait_until` takes them.
        mark: the value of the mark; None: `has_passed` needs none.
    """
    end = topic.end_offsets()
    if mark is not None:
        topic.mark_end(mark)
    wait_until(lambda: has_passed(end), timeout_s, otherwise, programs)
    return end
