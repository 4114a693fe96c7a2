"""Where progress is read: progress events and epoch commits become `Progress`. Spark's types stop here.

Micro-batch, async-progress and real-time mode send progress events (real-time at batch ends only). Continuous mode
sends none at all (SPARK-23887); there the epochs that the driver commits to the checkpoint say the same.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from fraud_filter.checkpoint.entries import BrokenEntryError
from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.checkpoint.plan import COMMITS, OFFSETS
from fraud_filter.checkpoint.progress import Offsets, Progress, StateProgress, from_event, offsets_of
from fraud_filter.checkpoint.reading import entry_numbers, read_offset_entry

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

#: The phase that only a batch that was executed has (Spark guide, "Monitoring").
_EXECUTED = "addBatch"


class ProgressReader(Protocol):
    """What progress is read from."""

    def newest(self) -> Progress | None:
        """The newest finished batch or epoch; None when there is none. `rows` and `late` count from the last call."""


class EventReader:
    """Reads the progress events that Spark keeps for a query, the last hundred, of the batches that were executed.

    They are asked for, and no listener is told: for a listener in Python Java calls back with each event, which is then
    taken apart by dozens of calls in the other direction.
    """

    def __init__(self, query: StreamingQuery, topic: str, last: Progress | None = None) -> None:
        """`last`: what is known already."""
        self._query: Any = query
        self._topic = topic
        self._last = last

    def newest(self) -> Progress | None:
        """The newest finished batch; None when there is none. `rows` and `late` count from the last call."""
        newer = list(self._newer())
        if newer:
            self._last = replace(newer[0], rows=sum(each.rows for each in newer), state=_added(newer))
        return self._last

    def _newer(self) -> Iterator[Progress]:
        """Those that are not known yet, the newest first."""
        recent = self._query._jsq.recentProgress()
        for index in reversed(range(len(recent))):
            event = recent[index]
            if self._last and int(event.batchId()) <= self._last.number:
                return
            told = json.loads(event.json())
            # A trigger without data sends an event too, under the number of the batch that comes next.
            if _EXECUTED in told.get("durationMs", {}):
                yield from_event(told, self._topic)


class CheckpointReader:
    """Reads committed offsets from a checkpoint, on any Hadoop file system.

    `offsets/N` holds the end offsets of batch or epoch N, `commits/N` exists when it is committed. Both are written by
    the driver.
    """

    def __init__(
        self, files: CheckpointFiles, topic: str, last: Progress | None = None, begin: Offsets | None = None
    ) -> None:
        """For the count of what is read: `last`, what is known already; else `begin`, if nothing is committed yet.

        Raises:
            CheckpointError: the file system refuses.
        """
        self._files = files
        self._topic = topic
        self._last = last
        self._begin = {} if any(True for _ in self._commits()) else begin or {}

    def newest(self) -> Progress | None:
        """The newest committed batch or epoch; None when there is none. `rows` and `start` count from the last call."""
        committed = max(self._commits(), default=None)
        if committed is None or (self._last and committed <= self._last.number):
            return self._last
        end = self._read(committed)
        if end is None:
            return self._last
        start = self._last.end if self._last else self._begin
        rows = sum(end[number] - start.get(number, end[number]) for number in end)
        now = time.time()
        rate = rows / (now - self._last.at) if self._last and now > self._last.at else None
        self._last = Progress(committed, start, end, rows, now, rate)
        return self._last

    def _commits(self) -> Iterator[int]:
        return iter(entry_numbers(self._files.names(COMMITS)))

    def _read(self, number: int) -> Offsets | None:
        if not self._files.exists(f"{OFFSETS}/{number}"):  # removed between the two looks: a newer one is there
            return None
        try:
            offset = read_offset_entry(self._files, number).offsets[0]
        except BrokenEntryError:  # a repair's matter
            return None
        return None if offset is None else offsets_of(offset, self._topic)


def _added(newer: list[Progress]) -> StateProgress | None:
    """The newest state, with the late rows of all these batches."""
    states = [each.state for each in newer if each.state]
    return replace(states[0], late=sum(each.late for each in states)) if states else None
