"""A checkpoint's files in memory, a query that writes them as Spark 4.3 does, and the places its engines start from.

The rules are those of Spark's source: MicroBatchExecution.populateStartOffsets, its async counterpart, and
ContinuousExecution.getStartOffsets. The tests in tests/embedded run the real engines.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from fraud_filter.checkpoint.contents import Contents, Log
from fraud_filter.checkpoint.entries import (
    OffsetEntry,
    check_commit_entry,
    parse_initial_offset,
    parse_offset_entry,
)
from fraud_filter.checkpoint.plan import Step, Write
from fraud_filter.config import ModeName

Files = dict[str, bytes]
COMMIT = b'v1\n{"nextBatchWatermarkMs":0}'
METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{"a":"b"}}'
BEGIN = 1000


class CanNotStartError(Exception):
    """The engine fails at its start, or at the end of its first batch."""


class KilledError(Exception):
    """The query was killed."""


def entry(number: int, at: int, *, metadata: bool = True) -> bytes:
    """An offset entry of a topic with one partition."""
    source = json.dumps({"payments": {"0": at}})
    return OffsetEntry(number, 1, METADATA if metadata else "", (source,)).content


def contents_of(files: Files) -> Contents:
    """What `reading` would make of the files."""

    def numbers(log: str) -> list[int]:
        return [int(path.split("/")[1]) for path in files if path.startswith(log) and path.split("/")[1].isdigit()]

    def commit(number: int) -> bytes:
        check_commit_entry(files[f"commits/{number}"])
        return files[f"commits/{number}"]

    initial = parse_initial_offset(files["sources/0/0"]) if "sources/0/0" in files else None
    return Contents(
        offsets=Log(numbers("offsets/"), lambda number: parse_offset_entry(number, files[f"offsets/{number}"])),
        commits=Log(numbers("commits/"), partial(commit)),
        initial=(initial,) if initial else None,
        leftovers=tuple(path for path in files if path.endswith(".tmp")),
    )


def read_directory(directory: Path) -> Files:
    """A recorded checkpoint."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def apply(files: Files, steps: Iterable[Step]) -> Files:
    """The files after the steps."""
    changed = dict(files)
    for step in steps:
        if isinstance(step, Write):
            changed[step.path] = step.content
        else:
            changed.pop(step.path, None)
    return changed


def start_of(files: Files, mode: ModeName) -> int | None:
    """The offset that the mode's engine reads on from; None: startingOffsets decide.

    Raises:
        CanNotStartError: it fails.
    """
    contents = contents_of(files)
    committed = max(contents.commits, default=None)
    newest = max(contents.offsets, default=None)
    if committed is not None and contents.commits.readable(committed) is None:
        raise CanNotStartError("the newest commit can't be read")
    if mode == "continuous":
        return None if committed is None else _end(contents, committed)
    if mode == "real-time" and newest is not None:
        if contents.offsets.readable(newest) is None:
            raise CanNotStartError("the newest entry can't be read")
        kept = [number for number in contents.offsets if committed is not None and number <= committed]
        newest = max(kept, default=None)  # OffsetSeqLog.purgeAfter
    if newest is None:
        if contents.leftovers or committed is not None:
            raise CanNotStartError("the logs are not empty")
        return _offset(contents.initial[0]) if contents.initial else None
    end = _end(contents, newest)
    earlier = [number for number in contents.offsets if number < newest]
    before = max(earlier, default=None) if mode != "micro-batch" else newest - 1 if newest else None
    began = _end(contents, before) if before is not None else _offset(contents.initial[0]) if contents.initial else None
    found = contents.offsets.readable(newest)
    if found is None or not found.metadata:
        raise CanNotStartError("no metadata")
    if committed == newest:
        return end
    if committed is not None and committed > newest:
        raise CanNotStartError("its entry is there already")
    return began


def _end(contents: Contents, number: int) -> int:
    found = contents.offsets.readable(number)
    if found is None:
        raise CanNotStartError(f"batch {number} doesn't exist")
    return _offset(found.sources[0])


def _offset(source: str) -> int:
    return int(json.loads(source)["payments"]["0"])


class Query:
    """A query whose runs are killed at random moments: `files` are its checkpoint, all before `written` was written."""

    def __init__(self, chance: random.Random) -> None:
        self.files: Files = {}
        self.written = BEGIN
        self._chance = chance
        self._at = BEGIN

    def run(self, mode: ModeName) -> None:
        """Runs until it is killed."""
        start = start_of(self.files, mode)
        self._at = BEGIN if start is None else start
        assert self._at <= self.written, (mode, self._at, self.written)
        if mode != "continuous" and "sources/0/0" not in self.files:
            self.files["sources/0/0"] = b"\0v1\n" + json.dumps({"payments": {"0": self._at}}).encode()
        try:
            {"continuous": self._continuous, "real-time": self._real_time}.get(mode, partial(self._batches, mode))()
        except KilledError:
            return

    def _may_die(self) -> None:
        if self._chance.random() < 0.12:
            raise KilledError

    def _put(self, path: str, content: bytes) -> None:
        self._may_die()
        assert path not in self.files, f"{path} is there already"
        self.files[path] = content
        self._may_die()

    def _write_to(self, end: int) -> None:
        """Reading again what was written before moves nothing."""
        self._may_die()
        self.written = max(self.written, end)
        self._may_die()

    def _more(self) -> int:
        return self._at + self._chance.randint(1, 9)

    def _numbers(self, log: str) -> list[int]:
        return list(contents_of(self.files).offsets if log == "offsets" else contents_of(self.files).commits)

    def _batches(self, mode: ModeName) -> None:
        offsets, commits = self._numbers("offsets"), self._numbers("commits")
        number = max(offsets, default=-1)
        if number >= 0 and number > max(commits, default=-1):  # runs again
            self._write_to(self._end_of(number))
            self._put(f"commits/{number}", COMMIT)
        while True:
            number, end = number + 1, max(self._more(), self._end_of(number) + 1)
            stored = mode == "micro-batch" or self._chance.random() < 0.4
            if stored:
                self._put(f"offsets/{number}", entry(number, end))
            self._write_to(end)
            self._at = end
            if stored:
                self._put(f"commits/{number}", COMMIT)

    def _end_of(self, number: int) -> int:
        content = self.files.get(f"offsets/{number}")
        return self._at if content is None else _offset(parse_offset_entry(number, content).sources[0])

    def _real_time(self) -> None:
        number = max(self._numbers("commits"), default=-1)
        self._purge_after(number)
        while True:
            number, end = number + 1, self._more()
            self._write_to(end)
            self._put(f"offsets/{number}", entry(number, end))
            self._put(f"commits/{number}", COMMIT)
            self._at = end

    def _purge_after(self, number: int) -> None:
        for later in [other for other in self._numbers("offsets") if other > number]:
            del self.files[f"offsets/{later}"]  # OffsetSeqLog.purgeAfter

    def _continuous(self) -> None:
        number = max(self._numbers("commits"), default=-1)
        if number >= 0:
            self._purge_after(number)
        waiting: list[tuple[int, int]] = []
        while True:
            number, self._at = number + 1, self._more()
            self._put(f"offsets/{number}", entry(number, self._at, metadata=False))
            waiting.append((number, self._at))
            while waiting and self._chance.random() < 0.6:  # commits may lag behind
                epoch, end = waiting.pop(0)
                self._write_to(end)
                self._put(f"commits/{epoch}", COMMIT)


def damage(files: Files, chance: random.Random) -> None:
    """Something that happens to disks and to careless people: newest entries cut short or deleted."""
    for log in chance.sample(["offsets", "commits", ""], 1):
        numbers = sorted((int(path.split("/")[1]) for path in files if path.startswith(f"{log}/")), reverse=True)
        for number in numbers[: chance.randint(1, 2)] if log else []:
            path = f"{log}/{number}"
            if chance.random() < 0.5:
                files[path] = files[path][: chance.randrange(len(files[path]) - 1)]
            else:
                del files[path]
