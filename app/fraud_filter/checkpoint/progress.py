"""What a running query has done, as one finished batch or epoch, and where that is read.

Micro-batch, async-progress and real-time mode send progress events (real-time at batch ends only). Continuous mode
sends none at all (SPARK-23887); there the epochs that the driver commits to the checkpoint say the same.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from fraud_filter.checkpoint.contents import entry_numbers, read_offset_entry
from fraud_filter.checkpoint.entries import COMMITS, OFFSETS, BrokenEntryError
from fraud_filter.checkpoint.files import CheckpointFiles

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

Offsets = dict[int, int]

#: Bytes of RocksDB's sorted files (Spark guide, "RocksDB state store", metrics).
_STATE_FILES = "rocksdbSstFileSize"


@dataclass(frozen=True)
class StateProgress:
    """The state that a query with features keeps, as of a batch's end.

    `keys` is the number of its rows, `memory_bytes` and `disk_bytes` what they take on the executors, `commit_s` the
    seconds that writing the batch's changes took, over all tasks. `late` rows lay behind the watermark: Spark drops
    them.
    """

    keys: int
    memory_bytes: int
    disk_bytes: int
    commit_s: float
    late: int


@dataclass(frozen=True)
class Progress:
    """One finished batch or epoch.

    `number` is the batch or epoch id; offsets are those of the input topic by partition, the end one past the last
    record; `rows` counts the input records; `durations_s` gives seconds by phase, as far as the engine tells;
    `at` is the time of the commit in seconds since 1970; `state` is None for a query that keeps none.
    """

    number: int
    start: Offsets
    end: Offsets
    rows: int
    at: float
    rows_per_second: float | None = None
    durations_s: dict[str, float] = field(default_factory=dict)
    state: StateProgress | None = None


def from_event(event: dict[str, Any], topic: str) -> Progress:
    """A StreamingQueryProgress, as the JSON object that Spark makes of it (Spark guide, "Monitoring")."""
    source = event["sources"][0] if event["sources"] else {}
    rate = event.get("processedRowsPerSecond")
    return Progress(
        number=int(event["batchId"]),
        start=offsets_of(source.get("startOffset"), topic),
        end=offsets_of(source.get("endOffset"), topic),
        rows=int(event.get("numInputRows", 0)),
        rows_per_second=float(rate) if isinstance(rate, int | float) else None,
        durations_s={phase: ms / 1000 for phase, ms in event.get("durationMs", {}).items()},
        at=datetime.fromisoformat(event["timestamp"].replace("Z", "+00:00")).timestamp()
        + event.get("durationMs", {}).get("triggerExecution", 0) / 1000,
        state=_state(event.get("stateOperators", [])),
    )


def _state(operators: list[dict[str, Any]]) -> StateProgress | None:
    """All operators together (Spark guide, "Monitoring": StateOperatorProgress)."""
    if not operators:
        return None

    def total(name: str) -> int:
        return sum(int(each.get(name, 0)) for each in operators)

    files = sum(int(each.get("customMetrics", {}).get(_STATE_FILES, 0)) for each in operators)
    return StateProgress(
        keys=total("numRowsTotal"),
        memory_bytes=total("memoryUsedBytes"),
        disk_bytes=files,
        commit_s=total("commitTimeMs") / 1000,
        late=total("numRowsDroppedByWatermark"),
    )


def offsets_of(value: Any, topic: str) -> Offsets:
    """Kafka offsets of one topic; none for another source, or before the first record."""
    if not isinstance(value, dict):
        return {}
    by_partition = value.get(topic)
    return {int(number): int(at) for number, at in by_partition.items()} if isinstance(by_partition, dict) else {}


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
