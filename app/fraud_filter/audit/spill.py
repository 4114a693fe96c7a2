"""Rows that wait on disk until their group's turn comes: memory holds a few megabytes of them at most."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

from fraud_filter.errors import FraudFilterError

#: Bytes that wait in memory for being written, of all groups together.
HELD_BYTES = 4 * 2**20
_READ_ROWS = 4096

Group = tuple[int, int]


class Spill:
    """A file for each group, in a directory that goes with this object. Its place is Python's own choice: TMPDIR."""

    def __init__(self, row_bytes: int, held_bytes: int = HELD_BYTES) -> None:
        """`held_bytes` wait in memory at most."""
        self._row_bytes = row_bytes
        self._most = held_bytes
        self._held: dict[Group, bytearray] = {}
        self._size = 0
        self._written: set[Group] = set()
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    def add(self, group: Group, row: bytes) -> None:
        """Adds a row to a group.

        Raises:
            FraudFilterError: the disk is full.
        """
        self._held.setdefault(group, bytearray()).extend(row)
        self._size += len(row)
        if self._size >= self._most:
            self._write()

    def groups(self) -> list[Group]:
        """Those with rows."""
        return sorted(self._written | self._held.keys())

    def take(self, group: Group) -> Iterator[bytes]:
        """A group's rows, many at a time; they are gone then.

        Raises:
            FraudFilterError: the file can't be read.
        """
        if group in self._written:
            file = self._file(group)
            try:
                with open(file, "rb") as rows:  # noqa: PTH123 - see `_file`
                    while part := rows.read(self._row_bytes * _READ_ROWS):
                        yield part
                os.remove(file)  # noqa: PTH107
            except OSError as error:
                raise self._refused(error) from None
            self._written.remove(group)
        rest = self._held.pop(group, None)
        if rest:
            self._size -= len(rest)
            yield bytes(rest)

    def _write(self) -> None:
        try:
            for group, rows in self._held.items():
                with open(self._file(group), "ab") as file:  # noqa: PTH123
                    file.write(rows)
                self._written.add(group)
        except OSError as error:
            raise self._refused(error) from None
        self._held, self._size = {}, 0

    def _file(self, group: Group) -> str:
        """No Path: each would leave its name in the interpreter's table of names."""
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="fraud-filter-audit-")
        return f"{self._directory.name}/{group[0]}-{group[1]}"

    def _refused(self, error: OSError) -> FraudFilterError:
        where = self._directory.name if self._directory else tempfile.gettempdir()
        return FraudFilterError(
            f"the audit can't keep its rows in {where}: {error.strerror}; TMPDIR names another place"
        )
