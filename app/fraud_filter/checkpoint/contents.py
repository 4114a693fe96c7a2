"""What a checkpoint holds, as its logs tell it, and what that proves: which records were written for sure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from fraud_filter.checkpoint.entries import BrokenEntryError, OffsetEntry

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
