"""The input topic as the monitor sees it each second: which topic it is, what it holds, and up to where."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka.admin import AdminClient

from fraud_filter.checkpoint.progress import Offsets
from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.offsets import open_consumer
from fraud_filter.kafka.partition_bounds import Bounds, ask_bounds
from fraud_filter.kafka.topic_id import find_input, open_admin
from fraud_filter.monitor.readable_ends import ReadableEnds

_log = logging.getLogger(__name__)


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
            _log.warning("event=monitor_failed query=%s error=%s", settings.query_name, error)
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
            _log.warning("event=partitions_unknown topic=%s partitions=%s", self._settings.input_topic, unknown)


@contextmanager
def watch_input(settings: Settings) -> Iterator[InputWatch]:
    """The clients of an `InputWatch`, while the block runs."""
    with open_consumer(settings, **CONSUMER) as reader:
        yield InputWatch(settings, open_admin(settings), ReadableEnds(reader, settings))
