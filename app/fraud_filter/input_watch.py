"""The input topic as the monitor sees it each second: which topic it is, what it holds, and up to where."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fraud_filter import readable_ends
from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError
from fraud_filter.offsets import find_bounds, open_consumer
from fraud_filter.progress import Offsets
from fraud_filter.readable_ends import ReadableEnds
from fraud_filter.topic_id import find_input, open_admin

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Seen:
    """One look: the topic's id, the first offset and the end of each partition, and its `ReadableEnds`."""

    topic_id: str
    bounds: dict[int, tuple[int, int]]
    readable: Offsets

    @property
    def latest(self) -> Offsets:
        """The ends."""
        return {number: end for number, (_, end) in self.bounds.items()}


class InputWatch:
    """Looks at the input topic; `watch_input` gives one. For one thread."""

    def __init__(self, settings: Settings, consumer: Any, ends: ReadableEnds) -> None:
        self._settings = settings
        self._consumer = consumer
        self._ends = ends
        self._admin = open_admin(settings)

    def look(self, committed: Mapping[int, int]) -> Seen | None:
        """The input as it is, given the committed offsets; None while no broker answers."""
        settings = self._settings
        if settings.source != "kafka":
            return Seen("", {}, {})
        try:
            topic = find_input(self._admin, settings)
            bounds = find_bounds(self._consumer, settings, settings.input_topic, topic.partitions)
        except FraudFilterError as error:
            _log.warning("event=monitor_failed query=%s error=%s", settings.query_name, error)
            return None
        latest = {number: end for number, (_, end) in bounds.items()}
        return Seen(topic.id, bounds, self._ends.look(committed, latest))


@contextmanager
def watch_input(settings: Settings) -> Iterator[InputWatch]:
    """The clients of an `InputWatch`, while the block runs."""
    with open_consumer(settings) as consumer, open_consumer(settings, **readable_ends.CONSUMER) as reader:
        yield InputWatch(settings, consumer, ReadableEnds(reader, settings))
