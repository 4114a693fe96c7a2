"""One entry of a checkpoint's logs: parsed, judged whole or broken, and written as Spark writes it.

Formats: Spark's OffsetSeqLog (version line, metadata line, a line a source) and CommitLog (version line, JSON).
Continuous mode leaves the metadata line of an offset entry empty; the other engines fail on such an entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

OFFSETS, COMMITS = "offsets", "commits"
_VERSION = re.compile(r"v(\d{1,9})")
#: What OffsetSeqLog writes for a source without an offset yet.
_VOID = "-"
#: What a metadata line needs of its query's settings: micro-batch and real-time compare this one between the entries of
#: a batch that is not committed and the one before, and end with `None.get` without it (OfflineStateRepartitionUtils).
#: Spark takes it over from the newest entry at a start; a query without state makes nothing of it.
REPAIRED_CONF = {"spark.sql.shuffle.partitions": "200"}


class BrokenEntryError(ValueError):
    """The entry is cut off or no entry at all; the text says what is wrong."""


@dataclass(frozen=True)
class OffsetEntry:
    """An entry of the offset log: where batch or epoch `number` ends. `metadata` is JSON, empty in continuous mode."""

    number: int
    version: int
    metadata: str
    sources: tuple[str, ...]

    @property
    def content(self) -> bytes:
        """The file's bytes."""
        return "\n".join((f"v{self.version}", self.metadata, *self.sources)).encode()

    @property
    def offsets(self) -> list[Any]:
        """The end offset of each source; for Kafka {topic: {partition: offset}}, None where there is none yet."""
        return [_offset(line, self.version) for line in self.sources]

    @property
    def timestamp_ms(self) -> int | None:
        """When the batch was planned, in milliseconds since 1970; None in continuous mode."""
        return _number(self.metadata, "batchTimestampMs")

    @property
    def watermark_ms(self) -> int:
        """The watermark of the batch, in milliseconds since 1970; 0 where there is none."""
        return _number(self.metadata, "batchWatermarkMs") or 0

    def with_metadata(self, now_ms: int) -> OffsetEntry:
        """The same with a metadata line: its own, or that of a query without watermark and state."""
        own = self.metadata or json.dumps(
            {"batchWatermarkMs": 0, "batchTimestampMs": now_ms, "conf": REPAIRED_CONF}, separators=(",", ":")
        )
        return replace(self, metadata=own)

    def as_number(self, number: int) -> OffsetEntry:
        """The same offsets as another batch's end."""
        return replace(self, number=number)

    def moved(self, topic: str, offsets: Mapping[int, int]) -> OffsetEntry:
        """The same with the `offsets`, by partition, for a topic of Kafka's; other sources stay."""
        return replace(self, sources=tuple(_moved(line, self.version, topic, offsets) for line in self.sources))


def parse_offset_entry(number: int, content: bytes) -> OffsetEntry:
    """Reads an entry of the offset log.

    Raises:
        BrokenEntryError: it is cut off, or no such entry.
    """
    lines = _lines(content)
    version = _version(lines)
    if len(lines) < 3:
        raise BrokenEntryError(f"it ends after {len(lines)} of at least 3 lines")
    metadata = lines[1].strip()
    if metadata and not isinstance(_json(metadata, "its metadata line"), dict):
        raise BrokenEntryError("its metadata line is no JSON object")
    for line in lines[2:]:
        _offset(line, version)
    return OffsetEntry(number, version, metadata, tuple(lines[2:]))


def check_commit_entry(content: bytes) -> None:
    """Checks an entry of the commit log.

    Raises:
        BrokenEntryError: it is cut off, or no such entry.
    """
    lines = _lines(content)
    _version(lines)
    if len(lines) > 1:
        _json(lines[1], "its second line")


def read_watermark(commit: bytes) -> int:
    """The watermark of the batch after the one that a commit entry is of; 0 where there is none."""
    lines = _lines(commit)
    return _number(lines[1] if len(lines) > 1 else "", "nextBatchWatermarkMs") or 0


def _number(text: str, name: str) -> int | None:
    """A whole number of a line of JSON, which may be empty."""
    found = json.loads(text).get(name) if text else None
    return found if isinstance(found, int) else None


def parse_initial_offset(content: bytes) -> str | None:
    """The line that `sources/N/0` keeps of a Kafka source: where the query first began. None for another source.

    Kafka's source writes a zero byte first (SPARK-19517), then a version line and the offsets.
    """
    try:
        lines = _lines(content.lstrip(b"\0"))
        _version(lines)
        line = lines[1]
        offsets = json.loads(line)
    except (BrokenEntryError, IndexError, ValueError, RecursionError):
        return None
    by_topic = isinstance(offsets, dict) and all(isinstance(value, dict) for value in offsets.values())
    return line if by_topic else None


def first_entry(initial: tuple[str, ...], now_ms: int) -> OffsetEntry:
    """Entry 0 that ends where the query first began: a batch without a record."""
    return OffsetEntry(0, 1, "", initial).with_metadata(now_ms)


def _lines(content: bytes) -> list[str]:
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError:
        raise BrokenEntryError("it is not text") from None
    if not lines:
        raise BrokenEntryError("it is empty")
    return lines


def _version(lines: list[str]) -> int:
    match = _VERSION.fullmatch(lines[0].strip())
    if not match:
        raise BrokenEntryError(f"its first line is {lines[0][:20]!r}, no version")
    return int(match[1])


def _moved(line: str, version: int, topic: str, offsets: Mapping[int, int]) -> str:
    found = _offset(line, version)
    if not isinstance(found, dict) or topic not in found:
        return line
    head = line[: line.index(":") + 1] if version > 1 else ""
    by_partition = {str(number): offset for number, offset in sorted(offsets.items())}
    return head + json.dumps({**found, topic: by_partition}, separators=(",", ":"))


def _offset(line: str, version: int) -> Any:
    """The offset in a source's line. Version 2 puts the source's id before it."""
    if version > 1:
        _, colon, line = line.partition(":")
        if not colon:
            raise BrokenEntryError("a line of a source has no id")
    return None if line == _VOID else _json(line, "the line of a source")


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BrokenEntryError(f"{what} is cut off or no JSON") from None
