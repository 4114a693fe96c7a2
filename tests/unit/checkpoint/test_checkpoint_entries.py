"""Entries of a checkpoint's logs, as Spark 4.2 wrote them (tests/data/checkpoints) and cut off at every byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from fraud_filter.checkpoint.entries import (
    BrokenEntryError,
    check_commit_entry,
    first_entry,
    parse_initial_offset,
    parse_offset_entry,
)

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
