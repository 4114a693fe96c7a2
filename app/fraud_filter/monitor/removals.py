"""Records that are removed from the input topic while the query runs, before it has committed them."""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Mapping
from dataclasses import replace

from fraud_filter.checkpoint.files import CheckpointError, CheckpointFiles
from fraud_filter.checkpoint.kept import Loss, add_losses
from fraud_filter.config import Settings

_log = logging.getLogger(__name__)


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
            _log.warning('event=data_lost topic=%s records=%d lost="%s"', self._topic, lost, told)
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
                _log.warning('event=losses_not_noted reason="%s"', error)
            else:
                self._kept = []
