"""Entries of a checkpoint's logs, as Spark 4.2 wrote them and cut off at every byte, and what they tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fraud_filter.checkpoint.entries import (
    BrokenEntryError,
    check_commit_entry,
    first_entry,
    parse_initial_offset,
    parse_offset_entry,
)
from fraud_filter.checkpoint.progress import StateProgress, from_event, offsets_of

DATA = Path(__file__).parents[2] / "data" / "checkpoints"
OFFSETS = sorted(path for path in DATA.glob("*/offsets/*") if path.name.isdigit())
COMMITS = sorted(path for path in DATA.glob("*/commits/*") if path.name.isdigit())


@pytest.mark.parametrize("path", OFFSETS, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_a_recorded_offset_entry_is_read_and_written_back(path: Path) -> None:
    content = path.read_bytes()
    entry = parse_offset_entry(int(path.name), content)
    assert entry.content == content
    assert entry.version == 1
    assert set(entry.offsets[0]["payments"]) == {"0", "1"}
    assert bool(entry.metadata) == (path.parts[-3] != "continuous-killed")
    assert (entry.timestamp_ms or 0) > 1_700_000_000_000 or not entry.metadata


@pytest.mark.parametrize("path", OFFSETS, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_an_offset_entry_cut_off_anywhere_is_broken(path: Path) -> None:
    content = path.read_bytes()
    for length in range(len(content)):
        with pytest.raises(BrokenEntryError):
            parse_offset_entry(int(path.name), content[:length])


@pytest.mark.parametrize("path", COMMITS, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_a_recorded_commit_entry_is_whole(path: Path) -> None:
    content = path.read_bytes()
    check_commit_entry(content)
    for length in (0, 1, len(content) - 1):
        with pytest.raises(BrokenEntryError):
            check_commit_entry(content[:length])


@pytest.mark.parametrize("content", [b"\x00\xff\xfe", b"v1\n[]\n{}", b"w1\n\n{}", b"v2\n\n{}"])
def test_what_is_no_entry_is_broken(content: bytes) -> None:
    with pytest.raises(BrokenEntryError):
        parse_offset_entry(0, content)


def test_an_entry_with_ids_of_sources_and_one_without_an_offset() -> None:
    entry = parse_offset_entry(3, b'v2\n{"batchTimestampMs":5}\n0:{"t":{"0":1}}\n1:-')
    assert (entry.offsets, entry.timestamp_ms) == ([{"t": {"0": 1}}, None], 5)


def test_where_a_query_began() -> None:
    line = parse_initial_offset((DATA / "micro-batch-killed/sources/0/0").read_bytes())
    assert line is not None
    entry = first_entry((line,), 7)
    assert (entry.number, entry.offsets[0].keys(), entry.timestamp_ms) == (0, {"payments"}, 7)
    assert parse_initial_offset(b"v1\n1234567890") is None  # the rate source's


def test_a_missing_metadata_line_is_added_once() -> None:
    entry = parse_offset_entry(3, b'v1\n\n{"t":{"0":1}}').with_metadata(9)
    conf = '{"spark.sql.shuffle.partitions":"200"}'
    assert entry.metadata == f'{{"batchWatermarkMs":0,"batchTimestampMs":9,"conf":{conf}}}'
    assert entry.with_metadata(10) == entry


@pytest.mark.parametrize(("version", "head"), [(1, ""), (2, "0:")])
def test_other_offsets_of_a_topic_leave_the_rest_as_it_is(version: int, head: str) -> None:
    content = (
        f'v{version}\n{{"batchWatermarkMs":0}}\n{head}{{"payments":{{"0":3}}}}\n{head}-\n{head}{{"other":{{"0":1}}}}'
    )
    moved = parse_offset_entry(4, content.encode()).moved("payments", {1: 8, 0: 5})
    expected = content.replace('{"0":3}', '{"0":5,"1":8}')
    assert moved.content.decode() == expected


# -- progress from what Spark 4.2 really sent and wrote: the events and log entries in tests/data


EVENTS = Path(__file__).parents[2] / "data"


@pytest.mark.parametrize("mode", ["micro-batch", "async-progress", "real-time"])
def test_a_progress_event(mode: str) -> None:
    event = json.loads((EVENTS / f"progress-{mode}.json").read_text())
    progress = from_event(event, "payments")
    assert progress.number == event["batchId"]
    assert progress.rows == event["numInputRows"] > 0
    assert set(progress.end) == {0, 1}
    if progress.start:  # none before the first record
        assert sum(progress.end.values()) - sum(progress.start.values()) == progress.rows
    assert progress.durations_s["triggerExecution"] > 0
    assert progress.rows_per_second is None or progress.rows_per_second > 0


def test_offsets_of_another_source_are_none() -> None:
    event = json.loads((EVENTS / "progress-micro-batch.json").read_text())
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
    event = json.loads((EVENTS / "progress-micro-batch.json").read_text())
    assert from_event(event, "payments").state is None
    files = {"customMetrics": {"rocksdbSstFileSize": 4096}}
    operators = [
        {"numRowsTotal": 3, "memoryUsedBytes": 100, "commitTimeMs": 250, "numRowsDroppedByWatermark": 0, **files},
        {"numRowsTotal": 4, "memoryUsedBytes": 50, "commitTimeMs": 500, "numRowsDroppedByWatermark": 2},
    ]
    state = from_event({**event, "stateOperators": operators}, "payments").state
    assert state == StateProgress(keys=7, memory_bytes=150, disk_bytes=4096, commit_s=0.75, late=2)
