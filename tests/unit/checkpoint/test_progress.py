"""Progress from what Spark 4.2 really sent and wrote: the events and log entries in tests/data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fraud_filter.checkpoint.progress import from_event, parse_offsets

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
    assert parse_offsets(text, "payments") == {0: 12, 1: 34}
    assert parse_offsets(text, "other") == {}


def test_an_entry_that_is_cut_off_is_none() -> None:
    assert parse_offsets("v1\n", "payments") is None
