"""The audit's books: for each payment what should have become of it, and what did. Knows no Kafka.

First all decisions are seen and put aside, by groups of neighbouring offsets; then the payments come, in the order of
their offsets, and each group is settled when its last payment has come. So memory holds one group of each partition
that is being read, and does not grow with the number of payments.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fraud_filter.audit.digest import ABSENT, BROKEN, FLAGGED, PASSED, REJECTED, UNTOLD, Digest, Row
from fraud_filter.audit.spill import HELD_BYTES, Spill
from fraud_filter.oracle import Decision
from fraud_filter.query.source_headers import Source
from fraud_filter.schema import REASON_LATE, REASON_UNDECIDABLE, PaymentSchema

#: Reasons of rejected records that stand for whatever decision is due: the audit can't tell when they hold.
_WHATEVER = (REASON_LATE, REASON_UNDECIDABLE)

__all__ = ["FLAGGED", "GROUP_OFFSETS", "PASSED", "REJECTED", "Finding", "Ledger"]

#: Offsets of a group: about 2 MiB of memory and, where all of them are to be flagged, some 65 bytes each.
GROUP_OFFSETS = 2**18
_SEEN_FLAGGED, _SEEN_REJECTED = 1, 2


class Finding(NamedTuple):
    """One thing that is wrong: where the payment was read, and what is wrong with it."""

    partition: int
    offset: int
    reason: str


class _Book:
    """One group: what should become of its payments."""

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.first = number * size
        self.kinds = bytearray(size)
        self.places = array("I", bytes(4 * size))  # of the rows of those that should be flagged or rejected
        self.rows = bytearray()
        self.seen = bytearray(size)
        #: Of payments that other rules decided, too: the kind and the row, by place and number of these rules.
        self.others: dict[tuple[int, int], tuple[int, bytes]] = {}


def _kind(decision: Decision) -> int:
    if decision.reason is not None:
        return REJECTED
    return FLAGGED if decision.rules else PASSED


class Ledger:
    """Books for the offsets `start` to before `end` of each partition; first `see` all, then `expect` all."""

    def __init__(
        self,
        schema: PaymentSchema,
        start: Mapping[int, int],
        end: Mapping[int, int],
        examples: int,
        group_offsets: int = GROUP_OFFSETS,
        held_bytes: int = HELD_BYTES,
        features: Sequence[str] = (),
        more: Sequence[PaymentSchema] = (),
    ) -> None:
        """`examples` findings of each kind are kept; decisions of `held_bytes` wait in memory, the others on disk.

        `features` are those fields of the schema that are the filter's own results; `more` the schemas of further
        rules, from number 1 on.
        """
        self._digest = Digest(schema, *more)
        self._spill = Spill(self._digest.row_bytes, held_bytes)
        self._size = group_offsets
        self._start, self._end = dict(start), dict(end)
        self._last: dict[int, int] = {}
        self._open: dict[int, _Book] = {}
        self._limit = examples
        self.expected: Counter[int] = Counter()
        self.written = self.rejected = self.duplicated = self.unexpected = self.former = self.lost = self.undecided = 0
        self._features = frozenset(features)
        self.compared = self.differing = self.untold = 0
        self.reject_reasons: Counter[str] = Counter()
        self.examples: dict[str, list[Finding]] = {"lost": [], "duplicated": [], "unexpected": []}

    def covers(self, source: Source) -> bool:
        """Whether the payment lies in the audited range; the topic is the caller's to compare."""
        number = source.partition
        return number in self._end and self._start[number] <= source.offset < self._end[number]

    def see_flagged(
        self,
        source: Source,
        key: bytes | None,
        fields: Sequence[Any] | None,
        rules: tuple[str, ...],
        version: int = 0,
    ) -> None:
        """Notes a flagged record, judged by the rules of number `version`; `fields` is None when it can't be read."""
        self._put_aside(source, self._digest.flagged(source, key, fields, rules, version))

    def see_rejected(self, source: Source, key: bytes | None, value: bytes | None, version: int = 0) -> None:
        """Notes a rejected record. A reason other than the oracle's is no fault: texts may differ."""
        self._put_aside(source, self._digest.rejected(source, key, value, version))

    def see_former(self) -> None:
        """Notes a decision on a payment of a former topic of the same name: it is no matter of this one's."""
        self.former += 1

    def see_outdated(self, source: Source, *, is_rejected: bool) -> None:
        """Notes a decision by rules that were replaced before the payment came; it stands in for no other decision."""
        self.written += not is_rejected
        verb = "rejected" if is_rejected else "flagged"
        reason = f"{verb} by the rules of version {source.version}, which were replaced before it came"
        self._unexpected(source.partition, source.offset, reason)

    def see_unreadable(self, partition: int, offset: int, topic: str) -> None:
        """Notes a record of an output topic (at its own partition and offset) without readable source headers."""
        self._unexpected(partition, offset, f"record of {topic} without readable source headers")

    def begin_at(self, start: Mapping[int, int]) -> None:
        """Moves the start of partitions whose first records were removed since."""
        self._start |= start

    def expect(
        self,
        partition: int,
        offset: int,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        decision: Decision,
        version: int = 0,
    ) -> None:
        """Notes what should become of a payment by the rules of number `version`; a partition's payments come in their
        order."""
        book = self._book(partition, offset // self._size)
        at, kind = offset - book.first, _kind(decision)
        book.kinds[at] = kind
        self.expected[kind] += 1
        if kind != PASSED:
            book.places[at] = len(book.rows) // self._digest.row_bytes
            book.rows += self._digest.expected(offset, timestamp_ms, key, value, decision, version)

    def allow(
        self,
        partition: int,
        offset: int,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        decision: Decision,
        version: int,
    ) -> None:
        """Notes what other rules than those of `expect`, which comes first, were right to make of a payment."""
        book = self._book(partition, offset // self._size)
        kind = _kind(decision)
        row = self._digest.expected(offset, timestamp_ms, key, value, decision, version) if kind != PASSED else b""
        book.others[offset - book.first, version] = kind, row

    def pass_over(self, partition: int, offset: int) -> None:
        """Notes a valid payment of which cannot be told whether it is to be flagged."""
        book = self._book(partition, offset // self._size)
        book.kinds[offset - book.first] = UNTOLD
        self.untold += 1

    def settle(self) -> None:
        """Settles the groups whose payments have begun to come: their partitions are read to their end."""
        for partition in sorted(self._open):
            self._settle(partition, self._open.pop(partition))

    def close(self) -> int:
        """Settles what is left; returns how many decisions are missing, flagged and rejected.

        `undecided` is then the number of those that come after the last decision of their partition.
        """
        self.settle()
        for partition, number in self._spill.groups():  # decisions where no payment is
            self._settle(partition, _Book(number, self._size))
        return self.lost

    def _put_aside(self, source: Source, row: bytes) -> None:
        self._last[source.partition] = max(self._last.get(source.partition, -1), source.offset)
        self._spill.add((source.partition, source.offset // self._size), row)

    def _book(self, partition: int, number: int) -> _Book:
        book = self._open.get(partition)
        if book is None or book.number != number:
            if book is not None:
                self._settle(partition, book)
            book = self._open[partition] = _Book(number, self._size)
        return book

    def _settle(self, partition: int, book: _Book) -> None:
        for part in self._spill.take((partition, book.number)):
            for row in self._digest.rows(part):
                if self._start[partition] <= row.offset:
                    self._see(partition, book, row)
        for row in self._digest.rows(book.rows):
            seen = _SEEN_FLAGGED if row.kind == FLAGGED else _SEEN_REJECTED
            if not book.seen[row.offset - book.first] & seen:
                self.lost += 1
                self.undecided += row.offset > self._last.get(partition, -1)
                verb = "flagged by" if row.kind == FLAGGED else "rejected as"
                self._example("lost", Finding(partition, row.offset, f"should be {verb} {self._digest.text(row)}"))

    def _see(self, partition: int, book: _Book, row: Row) -> None:
        at, told = row.offset - book.first, self._digest.text(row)
        other = book.others.get((at, row.version)) if book.others else None
        kind, is_rejected = other[0] if other else book.kinds[at], row.kind == REJECTED
        if is_rejected and told in _WHATEVER and kind != ABSENT:  # whatever it would have been
            if self._mark(book, at, _SEEN_REJECTED):
                self.reject_reasons[told] += 1
            book.seen[at] |= _SEEN_FLAGGED
            return
        self.written += not is_rejected
        if kind == UNTOLD and not is_rejected:
            return
        if kind != (REJECTED if is_rejected else FLAGGED):
            valid = dict.fromkeys((PASSED, FLAGGED, UNTOLD), "it is valid") if is_rejected else {}
            wrong = {ABSENT: "no record has this offset", PASSED: "it matches no rule", REJECTED: "it is not valid"}
            named = f"rejected ({told})" if is_rejected else f"flagged by {told or 'no rule'}"
            if is_rejected:
                self._mark(book, at, _SEEN_REJECTED)
            self._unexpected(partition, row.offset, f"{named}, but {(wrong | valid)[kind]}")
            return
        rows, place = (bytearray(other[1]), 0) if other else (book.rows, book.places[at])
        due = self._digest.row(rows, place)
        if row.timestamp_ms != due.timestamp_ms:
            late = f"decided with source.timestamp {row.timestamp_ms}, but the record's is {due.timestamp_ms}"
            self._unexpected(partition, row.offset, late)
            return
        if not self._mark(book, at, _SEEN_REJECTED if is_rejected else _SEEN_FLAGGED):
            self.duplicated += 1
            verb = "rejected" if is_rejected else "flagged"
            self._example("duplicated", Finding(partition, row.offset, f"{verb} again"))
        if is_rejected:
            self.reject_reasons[told.partition(":")[0]] += 1
        self._compare(partition, row, due)

    def _mark(self, book: _Book, at: int, sign: int) -> bool:
        """Whether it is the first such decision."""
        is_new = not book.seen[at] & sign
        book.seen[at] |= sign
        self.rejected += is_new and sign == _SEEN_REJECTED
        return is_new

    def _compare(self, partition: int, row: Row, due: Row) -> None:
        told = self._digest.text(row)
        if row.kind == FLAGGED and self._features:
            self.compared += 1
            self.differing += not self._features.isdisjoint(self._digest.differences(row, due))
        if row.kind == BROKEN:
            self._unexpected(partition, row.offset, "flagged with a value that is not a record with rules")
        elif row.kind == FLAGGED and row.detail != due.detail:
            instead = self._digest.text(due)
            self._unexpected(partition, row.offset, f"flagged by {told or 'no rule'} instead of {instead}")
        elif different := self._digest.differences(row, due):
            names = ", ".join(different)
            self._unexpected(partition, row.offset, f"written with another {names} than the record's")

    def _unexpected(self, partition: int, offset: int, reason: str) -> None:
        self.unexpected += 1
        self._example("unexpected", Finding(partition, offset, reason))

    def _example(self, kind: str, finding: Finding) -> None:
        if len(self.examples[kind]) < self._limit:
            self.examples[kind].append(finding)
