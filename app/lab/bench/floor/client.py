"""The floor: a plain consume, decide, produce loop on librdkafka, tuned for latency. Run as `python -m`, one process.

What one hop through this broker costs at least: no engine, no checkpoint but the committed offsets, one thread.
It writes what the filter writes, with the same headers, so that the audit holds for it as well.
"""

from __future__ import annotations

import gc
import json
import signal
import sys
import time
from types import FrameType
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from fraud_filter import schema as layout
from fraud_filter.config import Settings, load
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.admin import find_input, open_admin
from fraud_filter.kafka.client import librdkafka_config
from fraud_filter.records import most_written_bytes
from fraud_filter.rules.ruleset import load_rules
from fraud_filter.schema import input_schema
from lab.bench.floor.python_filter import PythonFilter

_POLL_S = 0.1
#: Offsets are committed this often, as a query's checkpoint is written now and then.
_COMMIT_S = 5.0
_FLUSH_S = 10.0

_CONSUMER: dict[str, Any] = {
    "group.id": "fraud-filter-floor",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "socket.nagle.disable": True,
    "fetch.min.bytes": 1,  # a fetch is answered as soon as there is a record
    "fetch.queue.backoff.ms": 0,
    "check.crcs": False,
}
_PRODUCER: dict[str, Any] = {
    "linger.ms": 0,
    "socket.nagle.disable": True,
    "acks": "all",  # as the filter's sink
    "delivery.report.only.error": True,
}


class Floor:
    """The loop, from the settings' starting offsets on."""

    def __init__(self, settings: Settings) -> None:
        """Raises UsageError: the schema or the rules are more than the plain filter knows, or no broker answers."""
        schema = input_schema(settings)
        self._filter = PythonFilter(schema, load_rules(settings.rules, schema), settings)
        self._settings = settings
        self._topic_id = find_input(open_admin(settings), settings).id
        self._consumer = Consumer(librdkafka_config(settings) | _CONSUMER)
        largest = {"message.max.bytes": most_written_bytes(settings), "on_delivery": self._fail}
        self._producer = Producer(librdkafka_config(settings) | _PRODUCER | largest)
        self._next: dict[int, int] = {}
        self._stopping = False
        self._error = ""

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        """A signal handler: the loop ends after the record that it is at."""
        self._stopping = True

    def run(self) -> None:
        """Reads, decides and writes until it is stopped; then all is written and committed.

        Raises:
            FraudFilterError: the broker refused a record, or reading failed.
        """
        topic = self._settings.input_topic
        starts = json.loads(self._settings.starting_offsets)[topic]
        self._consumer.assign([TopicPartition(topic, int(partition), at) for partition, at in starts.items()])
        gc.collect()
        gc.freeze()  # what is there now is never looked at again: shorter pauses
        commit_at = time.monotonic() + _COMMIT_S
        while not self._stopping:
            message = self._consumer.poll(_POLL_S)
            if message is not None:
                self._take(message)
            self._producer.poll(0)
            if self._error:
                raise FraudFilterError(self._error)
            if not len(self._producer) and time.monotonic() >= commit_at:  # all of it is written
                self._commit()
                commit_at = time.monotonic() + _COMMIT_S
        if self._producer.flush(_FLUSH_S):
            raise FraudFilterError("the broker did not confirm all records")
        self._commit()
        self._consumer.close()  # the commit goes out before

    def _take(self, message: Any) -> None:
        error = message.error()
        if error is not None:
            if error.fatal() or not (error.retriable() or error.code() == KafkaError._PARTITION_EOF):
                raise FraudFilterError(f"topic {self._settings.input_topic!r} can't be read: {error.str()}")
            return
        place = message.partition(), message.offset()
        self._next[place[0]] = place[1] + 1
        written = self._filter.decide(message.key(), message.value())
        if written is None:
            return
        headers: list[tuple[str, Any]] = [
            (layout.HEADER_TOPIC, message.topic()),
            (layout.HEADER_PARTITION, str(place[0])),
            (layout.HEADER_OFFSET, str(place[1])),
            (layout.HEADER_TIMESTAMP, str(message.timestamp()[1])),
            (layout.HEADER_TOPIC_ID, self._topic_id),
        ]
        headers.append((layout.HEADER_DECISION, layout.REJECT if written.reason else layout.FLAG))
        if written.reason:
            headers.append((layout.HEADER_REASON, written.reason))
        topic = self._settings.rejected_topic if written.reason else self._settings.flagged_topic
        while True:
            try:
                self._producer.produce(topic, written.value, written.key, headers=headers)
            except BufferError:
                self._producer.poll(_POLL_S)
            else:
                return

    def _commit(self) -> None:
        topic = self._settings.input_topic
        if self._next:
            self._consumer.commit(offsets=[TopicPartition(topic, place, at) for place, at in self._next.items()])

    def _fail(self, error: KafkaError, _: Message) -> None:
        self._error = self._error or f"a record could not be written: {error.str()}"


def main() -> None:
    """Runs the floor with the settings of the environment."""
    try:
        floor = Floor(load())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, floor.stop)
        floor.run()
    except FraudFilterError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
