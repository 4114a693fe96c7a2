"""What the audit keeps of a payment's decision: a few hashes of fixed length, the same of what is expected and written.

22 bytes and 4 a field. Hashes are those of this process.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from fraud_filter.oracle import Decision
from fraud_filter.query.source_headers import Source
from fraud_filter.schema import PaymentSchema

#: What should become of a payment, or did. ABSENT: there is no record at this offset. BROKEN: flagged, and unreadable.
#: UNTOLD: valid, and flagged or not.
ABSENT, PASSED, FLAGGED, REJECTED, BROKEN, UNTOLD = range(6)

#: More sets of rules, or reasons, are told without their words: what others write to the topics has no bound.
_MOST_TEXTS = 100_000
_UNTOLD = "others"
_INT64 = (-(2**63), 2**63 - 1)


class Row(NamedTuple):
    """One decision. `detail` stands for its rules, or its reason; `content` are hashes of key and fields, or value.

    `version` is the number of the rules by which it is judged.
    """

    offset: int
    timestamp_ms: int
    kind: int
    version: int
    detail: int
    content: Sequence[int]


class Digest:
    """Makes rows of payments, and reads them."""

    def __init__(self, *schemas: PaymentSchema) -> None:
        """`schemas` of the payments, by the number of the rules."""
        self._names = [["key", *(field.name for field in schema.fields)] for schema in schemas]
        # Spark writes these in milliseconds, whatever they had
        self._coarse = [
            frozenset(at for at, field in enumerate(schema.fields) if field.type == "TIMESTAMP_NTZ")
            for schema in schemas
        ]
        self._places = max(map(len, self._names))
        self._layout = struct.Struct(f"<qqBHQ{self._places}I")
        self._texts: dict[int, str] = {}

    @property
    def row_bytes(self) -> int:
        """The length of a row."""
        return self._layout.size

    def expected(
        self,
        offset: int,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        decision: Decision,
        version: int = 0,
    ) -> bytes:
        """The row of a payment that should be flagged or rejected."""
        if decision.reason is None:
            content = self._content(key, decision.fields, version)
            return self._row(offset, timestamp_ms, FLAGGED, version, decision.rules, content)
        return self._row(offset, timestamp_ms, REJECTED, version, (decision.reason,), (_hash(key), _hash(value)))

    def flagged(
        self,
        source: Source,
        key: bytes | None,
        fields: Sequence[Any] | None,
        rules: tuple[str, ...],
        version: int = 0,
    ) -> bytes:
        """The row of a flagged record; `fields` is None when it can't be read."""
        kind, content = (BROKEN, ()) if fields is None else (FLAGGED, self._content(key, fields, version))
        return self._row(source.offset, source.timestamp_ms, kind, version, rules, content)

    def rejected(self, source: Source, key: bytes | None, value: bytes | None, version: int = 0) -> bytes:
        """The row of a rejected record."""
        hashes = (_hash(key), _hash(value))
        return self._row(source.offset, source.timestamp_ms, REJECTED, version, (source.reason,), hashes)

    def rows(self, packed: bytes | bytearray) -> Iterator[Row]:
        """Those that stand one after the other."""
        for offset, timestamp_ms, kind, version, detail, *content in self._layout.iter_unpack(packed):
            yield Row(offset, timestamp_ms, kind, version, detail, content)

    def row(self, packed: bytearray, number: int) -> Row:
        """One of them."""
        place = number * self._layout.size
        return next(self.rows(packed[place : place + self._layout.size]))

    def text(self, row: Row) -> str:
        """The rules of a row, or its reason."""
        return self._texts.get(row.detail, _UNTOLD)

    def differences(self, one: Row, other: Row) -> list[str]:
        """The parts of the content in which two rows of a kind differ."""
        names = ["key", "value"] if one.kind == REJECTED else self._names[one.version]
        return [name for name, its, others in zip(names, one.content, other.content, strict=False) if its != others]

    def _row(
        self,
        offset: int,
        timestamp_ms: int,
        kind: int,
        version: int,
        detail: tuple[str, ...],
        content: Sequence[int],
    ) -> bytes:
        number = hash(detail) & 0xFFFFFFFFFFFFFFFF
        if number not in self._texts and len(self._texts) < _MOST_TEXTS:
            self._texts[number] = ", ".join(detail)
        low, high = _INT64
        rest = [0] * (self._places - len(content))
        return self._layout.pack(offset, min(max(timestamp_ms, low), high), kind, version, number, *content, *rest)

    def _content(self, key: bytes | None, fields: Sequence[Any], version: int) -> list[int]:
        hashes = [_hash(value) for value in fields]
        for at in self._coarse[version]:
            hashes[at] = _hash(None if fields[at] is None else fields[at] // 1000)
        return [_hash(key), *hashes]


def _hash(value: Any) -> int:
    """32 bits; -1 and -2, 1 and 1.0, and None and 'None' differ."""
    return hash(value if type(value) is str or type(value) is bytes else (repr(value),)) & 0xFFFFFFFF
