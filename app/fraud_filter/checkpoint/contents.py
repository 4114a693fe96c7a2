"""What a checkpoint holds, as its logs tell it, and what that proves: which records were written for sure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from fraud_filter.checkpoint.entries import (
    COMMITS,
    OFFSETS,
    BrokenEntryError,
    OffsetEntry,
    check_commit_entry,
    parse_initial_offset,
    parse_offset_entry,
)
from fraud_filter.checkpoint.files import CheckpointFiles

T = TypeVar("T")


@dataclass(frozen=True)
class Broken:
    """An entry that can't be read, and why."""

    reason: str


class Log(Mapping[int, "T | Broken"], Generic[T]):
    """The entries of a log by number, each read when it is first asked for: logs hold 100 entries and more."""

    def __init__(self, numbers: list[int], read: Callable[[int], T]) -> None:
        """`read` gives an entry or raises BrokenEntryError."""
        self._numbers = sorted(numbers)
        self._read = read
        self._known: dict[int, T | Broken] = {}

    def __getitem__(self, number: int) -> T | Broken:
        if number not in self._known:
            if number not in self._numbers:
                raise KeyError(number)
            try:
                self._known[number] = self._read(number)
            except BrokenEntryError as error:
                self._known[number] = Broken(str(error))
        return self._known[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def newest(self, at_most: int | None = None) -> T | None:
        """The newest entry that can be read, not after `at_most`."""
        number = self.newest_number(at_most)
        entry = self[number] if number is not None else None
        return None if isinstance(entry, Broken) else entry

    def newest_number(self, at_most: int | None = None) -> int | None:
        """Its number."""
        for number in reversed(self._numbers):
            if (at_most is None or number <= at_most) and not isinstance(self[number], Broken):
                return number
        return None

    def readable(self, number: int) -> T | None:
        """The entry, None when there is none or it is broken."""
        entry = self.get(number)
        return None if isinstance(entry, Broken) else entry


@dataclass(frozen=True)
class Contents:
    """A checkpoint.

    `offsets` and `commits` are its two logs, commits as bytes; `initial` is where each source first began, if Kafka's
    source wrote it down; `leftovers` are temporary files that a killed query left in the logs, by path; `stateful`
    says that the query keeps state.
    """

    offsets: Log[OffsetEntry]
    commits: Log[bytes]
    query_id: str | None = None
    initial: tuple[str, ...] | None = None
    leftovers: tuple[str, ...] = ()
    stateful: bool = False
    kept_aside: tuple[str, ...] = field(default=())

    @property
    def committed(self) -> int | None:
        """The newest batch or epoch that was committed; a commit entry that can't be read counts as none."""
        return self.commits.newest_number()

    @property
    def proven(self) -> OffsetEntry | None:
        """The newest entry up to which all was written for sure: readable, and not after the newest commit.

        Batches and epochs are committed in their order, so a commit proves all before it.
        """
        committed = self.committed
        return None if committed is None else self.offsets.newest(committed)

    @property
    def pending(self) -> list[int]:
        """Numbers of the offset entries after the newest commit: planned or read, perhaps written, not committed."""
        committed = self.committed
        return [number for number in self.offsets if committed is None or number > committed]


#: An entry's name as Spark writes it; what else lies in a log is none, to Spark neither.
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")

#: Prefix of the directories in which a repair keeps the old logs; see `repair`.
KEPT_ASIDE = "before-repair-"


def read_contents(files: CheckpointFiles) -> Contents:
    """What the checkpoint holds; an empty one when there is none.

    Raises:
        FraudFilterError: the file system refuses or can't be reached.
    """
    names = {log: files.names(log) for log in (OFFSETS, COMMITS)}
    # Spark takes a directory for an entry, too, and can't read it.
    numbers = {log: entry_numbers(names[log] + files.names(log, directories=True)) for log in names}
    return Contents(
        offsets=Log(numbers[OFFSETS], partial(read_offset_entry, files)),
        commits=Log(numbers[COMMITS], partial(_commit_entry, files)),
        query_id=_query_id(files),
        initial=_initial(files),
        leftovers=tuple(f"{log}/{name}" for log, found in names.items() for name in found if _is_temporary(name)),
        stateful=bool(files.names("state", directories=True)),
        kept_aside=tuple(name for name in files.names(directories=True) if name.startswith(KEPT_ASIDE)),
    )


def entry_numbers(names: Iterable[str]) -> list[int]:
    """The numbers of those names that are an entry's."""
    return [int(name) for name in names if _NUMBER.fullmatch(name)]


def _is_temporary(name: str) -> bool:
    """What a killed write of Spark's or ours left; checksums go with their files."""
    return name.startswith(".") and name.endswith(".tmp")


def read_offset_entry(files: CheckpointFiles, number: int) -> OffsetEntry:
    """Entry `number` of the offset log.

    Raises:
        BrokenEntryError: it can't be read as such.
        CheckpointError: the file system refuses.
    """
    return parse_offset_entry(number, files.read(f"{OFFSETS}/{number}"))


def _commit_entry(files: CheckpointFiles, number: int) -> bytes:
    content = files.read(f"{COMMITS}/{number}")
    check_commit_entry(content)
    return content


def _query_id(files: CheckpointFiles) -> str | None:
    if not files.exists("metadata"):
        return None
    try:
        found = json.loads(files.read("metadata")).get("id")
    except (BrokenEntryError, ValueError, AttributeError, RecursionError):
        return None
    return str(found)


def _initial(files: CheckpointFiles) -> tuple[str, ...] | None:
    """Where each source first began; None unless every source is Kafka's and has written it down."""
    sources = sorted(entry_numbers(files.names("sources", directories=True)))
    found = []
    for source in sources:
        path = f"sources/{source}/0"
        try:
            line = parse_initial_offset(files.read(path)) if files.exists(path) else None
        except BrokenEntryError:
            line = None
        if line is None:
            return None
        found.append(line)
    return tuple(found) or None
