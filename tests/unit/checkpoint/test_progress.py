"""Progress from what Spark 4.2 really sent and wrote: the events and log entries in tests/data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fraud_filter.checkpoint.entries import parse_offset_entry
from fraud_filter.checkpoint.progress import StateProgress, from_event, offsets_of

DATA = Path(__file__).parents[2] / "data"


@pytest.mark.parametrize("mode", ["micro-batch", "async-progress", "real-time"])
def test_a_progress_event(mode: str) -> None:
    event = json.loads((DATA / f"progress-{mode}.json").read_text())
    progress = from_event(event, "payments")
    assert progress.number == event["batchId"]
    assert progress.rows == event["numInputRows"] > 0
    assert set(progress.end) == {0, 1}
    if progress.start:  # none before the first record
        assert sum(progress.end.values()) - sum(progress.start.values()) == progress.rows
    assert progress.durations_s["triggerExecution"] > 0
    assert progress.rows_per_second is None or progress.rows_per_second > 0


def test_offsets_of_another_source_are_none() -> None:
    event = json.loads((DATA / "progress-micro-batch.json").read_text())
    event["sources"][0]["endOffset"] = 17
    assert from_event(event, "payments").end == {}
    assert from_event({**event, "sources": []}, "payments").start == {}


@pytest.mark.parametrize("metadata", ["", '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}'])
def test_an_entry_of_the_offset_log_with_and_without_metadata(metadata: str) -> None:
    text = f'v1\n{metadata}\n{{"payments":{{"1":34,"0":12}}}}'
    (offset,) = parse_offset_entry(7, text.encode()).offsets
    assert offsets_of(offset, "payments") == {0: 12, 1: 34}
    assert offsets_of(offset, "other") == {}


def test_the_state_of_all_operators_is_told_together() -> None:
    event = json.loads((DATA / "progress-micro-batch.json").read_text())
    assert from_event(event, "payments").state is None
    files = {"customMetrics": {"rocksdbSstFileSize": 4096}}
    operators = [
        {"numRowsTotal": 3, "memoryUsedBytes": 100, "commitTimeMs": 250, "numRowsDroppedByWatermark": 0, **files},
        {"numRowsTotal": 4, "memoryUsedBytes": 50, "commitTimeMs": 500, "numRowsDroppedByWatermark": 2},
    ]
    state = from_event({**event, "stateOperators": operators}, "payments").state
    assert state == StateProgress(keys=7, memory_bytes=150, disk_bytes=4096, commit_s=0.75, late=2)
