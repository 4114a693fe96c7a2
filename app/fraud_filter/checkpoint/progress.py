"""What a running query has done, as one finished batch or epoch."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

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
