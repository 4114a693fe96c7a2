"""The audit's books: for each payment what should have become of it, and what did. Knows no Kafka.

A payment is known by partition and offset. Of its content only hashes are kept, so that millions fit into memory:
about 10 bytes a payment, and 4 bytes a field for those that must be flagged.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fraud_filter.oracle import Decision
from fraud_filter.schema import PaymentSchema
from fraud_filter.source_headers import Source

#: What should become of a payment. ABSENT: there is no record at this offset.
ABSENT, PASSED, FLAGGED, REJECTED = range(4)


class Finding(NamedTuple):
    """One thing that is wrong: where the payment was read, and what is wrong with it."""

    partition: int
    offset: int
    reason: str


@dataclass
class _Partition:
    """Arrays with one place an offset, from `start` on."""

    start: int
    expected: Any
    detail: Any  # number of the rule set or of the reason
    row: Any  # place of the content's hashes
    flagged: Any  # records seen, at most 255
    rejected: Any

    @classmethod
    def empty(cls, start: int, end: int) -> _Partition:
        size = max(0, end - start)
        zeros = [np.zeros(size, kind) for kind in (np.uint8, np.uint32, np.uint32, np.uint8, np.uint8)]
        return cls(start, *zeros)

    @property
    def last_decided(self) -> int:
        """The highest offset of which a record was seen; the one before `start` where none was."""
        seen = np.flatnonzero((self.flagged > 0) | (self.rejected > 0))
        return self.start + (int(seen[-1]) if len(seen) else -1)


class Ledger:
    """Books for the offsets `start` to before `end` of each partition; first `expect` all, then `see` all."""

    def __init__(self, schema: PaymentSchema, start: Mapping[int, int], end: Mapping[int, int], examples: int) -> None:
        """`examples` findings of each kind are kept."""
        self._partitions = {partition: _Partition.empty(start[partition], end[partition]) for partition in end}
        self._names = [field.name for field in schema.fields]
        # Spark writes these in milliseconds, whatever they had
        self._coarse = frozenset(at for at, field in enumerate(schema.fields) if field.type == "TIMESTAMP_NTZ")
        self._details: list[tuple[str, ...]] = []  # rule sets, and reasons as sets of one
        self._numbers: dict[tuple[str, ...], int] = {}
        self._hashes = array("I")
        self._limit = examples
        self.expected: Counter[int] = Counter()
        self.written = self.duplicated = self.unexpected = self.undecided = 0
        self.reject_reasons: Counter[str] = Counter()
        self.examples: dict[str, list[Finding]] = {"lost": [], "duplicated": [], "unexpected": []}

    def expect(self, partition: int, offset: int, key: bytes | None, value: bytes | None, decision: Decision) -> None:
        """Notes what should become of a payment."""
        book = self._partitions[partition]
        at = offset - book.start
        if decision.reason is None and not decision.rules:
            book.expected[at] = PASSED
            self.expected[PASSED] += 1
            return
        kind = FLAGGED if decision.reason is None else REJECTED
        detail = decision.rules if decision.reason is None else (decision.reason,)
        content = self._content(key, decision.fields) if decision.reason is None else [_hash(key), _hash(value)]
        book.expected[at] = kind
        book.detail[at] = self._number(detail)
        book.row[at] = len(self._hashes)
        self._hashes.extend(content)
        self.expected[kind] += 1

    def covers(self, source: Source) -> bool:
        """Whether the payment lies in the audited range; the topic is the caller's to compare."""
        book = self._partitions.get(source.partition)
        return book is not None and book.start <= source.offset < book.start + len(book.expected)

    def see_flagged(
        self, source: Source, key: bytes | None, fields: Sequence[Any] | None, rules: tuple[str, ...]
    ) -> None:
        """Notes a flagged record; `fields` is None when it can't be read."""
        book, at = self._place(source)
        self.written += 1
        expected = book.expected[at]
        named = ", ".join(rules) or "no rule"
        if expected != FLAGGED:
            wrong = {ABSENT: "no payment has this offset", PASSED: "it matches no rule", REJECTED: "it is not valid"}
            self._unexpected(source, f"flagged by {named}, but {wrong[int(expected)]}")
            return
        self._count(book.flagged, at, source, "flagged")
        if fields is None:
            self._unexpected(source, "flagged with a value that is not a payment with rules")
        elif rules != self._detail(book, at):
            self._unexpected(source, f"flagged by {named} instead of {', '.join(self._detail(book, at))}")
        else:
            self._compare(source, self._content(key, fields), int(book.row[at]), ["key", *self._names])

    def see_rejected(self, source: Source, key: bytes | None, value: bytes | None) -> None:
        """Notes a rejected record. A reason other than the oracle's is no fault: texts may differ."""
        book, at = self._place(source)
        expected = book.expected[at]
        if expected != REJECTED:
            wrong = {ABSENT: "no payment has this offset", PASSED: "it is valid", FLAGGED: "it is valid"}
            book.rejected[at] = 1
            self._unexpected(source, f"rejected ({source.reason}), but {wrong[int(expected)]}")
            return
        self._count(book.rejected, at, source, "rejected")
        self.reject_reasons[source.reason.partition(":")[0]] += 1
        self._compare(source, [_hash(key), _hash(value)], int(book.row[at]), ["key", "value"])

    def see_unreadable(self, partition: int, offset: int, topic: str) -> None:
        """Notes a record of an output topic (at its own partition and offset) without readable source headers."""
        self.unexpected += 1
        self._example("unexpected", Finding(partition, offset, f"record of {topic} without readable source headers"))

    @property
    def rejected(self) -> int:
        """Payments of which a rejected record was seen."""
        return sum(int(np.count_nonzero(book.rejected)) for book in self._partitions.values())

    def close(self) -> int:
        """Counts what is missing, flagged and rejected, and keeps examples of it.

        `undecided` becomes the number of those that come after the last decision of their partition.
        """
        lost, last = 0, {partition: book.last_decided for partition, book in self._partitions.items()}
        for finding in self._missing():
            lost += 1
            self.undecided += finding.offset > last[finding.partition]
            self._example("lost", finding)
        return lost

    def _missing(self) -> Iterator[Finding]:
        for partition, book in sorted(self._partitions.items()):
            is_missing = ((book.expected == FLAGGED) & (book.flagged == 0)) | (
                (book.expected == REJECTED) & (book.rejected == 0)
            )
            for at in np.flatnonzero(is_missing):
                verb = "flagged by" if book.expected[at] == FLAGGED else "rejected as"
                yield Finding(
                    partition, book.start + int(at), f"should be {verb} {', '.join(self._detail(book, int(at)))}"
                )

    def _place(self, source: Source) -> tuple[_Partition, int]:
        book = self._partitions[source.partition]
        return book, source.offset - book.start

    def _detail(self, book: _Partition, at: int) -> tuple[str, ...]:
        return self._details[int(book.detail[at])]

    def _number(self, detail: tuple[str, ...]) -> int:
        number = self._numbers.setdefault(detail, len(self._details))
        if number == len(self._details):
            self._details.append(detail)
        return number

    def _count(self, seen: Any, at: int, source: Source, verb: str) -> None:
        if seen[at]:
            self.duplicated += 1
            self._example("duplicated", Finding(source.partition, source.offset, f"{verb} again"))
        seen[at] = 1

    def _compare(self, source: Source, content: Sequence[int], row: int, names: Sequence[str]) -> None:
        kept = self._hashes[row : row + len(content)]
        different = [name for name, one, other in zip(names, content, kept, strict=True) if one != other]
        if different:
            self._unexpected(source, f"written with another {', '.join(different)} than the payment's")

    def _content(self, key: bytes | None, fields: Sequence[Any]) -> list[int]:
        hashes = [_hash(value) for value in fields]
        for at in self._coarse:
            hashes[at] = _hash(None if fields[at] is None else fields[at] // 1000)
        return [_hash(key), *hashes]

    def _unexpected(self, source: Source, reason: str) -> None:
        self.unexpected += 1
        self._example("unexpected", Finding(source.partition, source.offset, reason))

    def _example(self, kind: str, finding: Finding) -> None:
        if len(self.examples[kind]) < self._limit:
            self.examples[kind].append(finding)


def _hash(value: Any) -> int:
    """32 bits; -1 and -2, 1 and 1.0, and None and 'None' differ."""
    return hash(value if type(value) is str or type(value) is bytes else (repr(value),)) & 0xFFFFFFFF
