"""Which records make what is tried on them fail: ranges of offsets are tried and halved.

It is pure: what it knows survives the Java process in which a range was tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fraud_filter.checkpoint.progress import Offsets

#: Records of a partition that are tried at once, at most: a try is bounded in time.
_AT_ONCE = 50_000
#: Tries that fail without a record that passes, or records that fail at all: more are no fault of records.
_MOST_ALONE, _MOST = 3, 100


class Span(NamedTuple):
    """Offsets `start` to before `end` of a partition."""

    partition: int
    start: int
    end: int


class Narrowing:
    """The search through the records from `at` to before `ends`, by partition.

    `next` says what to try, `passed` and `failed` what came of it. Each partition is gone through in its order.
    """

    def __init__(self, at: Mapping[int, int], ends: Mapping[int, int]) -> None:
        self.at = dict(at)
        self._later = _chunks(at, ends)
        self._stack = [chunk for chunk in [next(self._later, None)] if chunk]
        self._failing: list[tuple[int, int]] = []
        self._retried = self._has_passed = False
        #: Before these offsets all records passed, or failed alone.
        self.done: Offsets = {}
        #: Whether it makes no sense to go on: what fails is no fault of a record.
        self.is_vain = False

    @property
    def found(self) -> list[tuple[int, int]]:
        """Partition and offset of the records that fail alone while others pass."""
        return self._failing if self._has_passed else []

    @property
    def failing(self) -> list[tuple[int, int]]:
        """Partition and offset of the records that fail alone, whether or not others pass."""
        return list(self._failing)

    @property
    def is_unproven(self) -> bool:
        """Whether records fail alone, and none passes that would show that it is their fault."""
        return bool(self._failing) and not self._has_passed

    def vouch(self) -> None:
        """Other records than those that are searched pass."""
        self._has_passed = True

    def next(self) -> list[Span] | None:
        """What to try next; None where the search is over."""
        if self.is_vain or not self._stack:
            return None
        return self._stack[-1]

    def passed(self) -> None:
        """All records of the last try passed."""
        self._has_passed, self._retried = True, False
        self._close()

    def failed(self) -> None:
        """The last try failed, or did not come to its end."""
        spans = self._stack[-1]
        if len(spans) > 1:
            self._split(spans[: len(spans) // 2], spans[len(spans) // 2 :])
            return
        [span] = spans
        if span.end - span.start > 1:
            middle = (span.start + span.end) // 2
            self._split([span._replace(end=middle)], [span._replace(start=middle)])
            return
        if not self._retried:  # it may have been chance
            self._retried = True
            return
        self._retried = False
        self._failing.append((span.partition, span.start))
        self._close()
        self.is_vain = len(self._failing) >= (_MOST if self._has_passed else _MOST_ALONE)

    def _split(self, first: list[Span], second: list[Span]) -> None:
        self._stack[-1:] = [second, first]

    def _close(self) -> None:
        for span in self._stack.pop():
            self.done[span.partition] = span.end
        if not self._stack and not self.found:
            self._stack += [chunk for chunk in [next(self._later, None)] if chunk]


def _chunks(at: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[list[Span]]:
    """The ranges, some records of each partition at a time."""
    left = {number: start for number, start in sorted(at.items()) if start < ends.get(number, start)}
    while left:
        yield [Span(number, start, min(start + _AT_ONCE, ends[number])) for number, start in left.items()]
        left = {number: start + _AT_ONCE for number, start in left.items() if start + _AT_ONCE < ends[number]}
