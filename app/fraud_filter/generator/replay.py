"""Replays a recorded file of payments: at the recorded pace, at a multiple of it, or at another pace."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fraud_filter.errors import UsageError
from fraud_filter.generator.convert import as_json_values, convert
from fraud_filter.generator.mapping import identity_mapping, load_mapping
from fraud_filter.generator.pace import Pace
from fraud_filter.generator.source import Batch
from fraud_filter.generator.tablefile import TableFile
from fraud_filter.schema import PaymentSchema

#: The field that is the record's key, as for made-up payments: a card's payments stay in one partition.
_KEY = "card_id"
#: Rows encoded at once: few enough to hold up the sender for about a millisecond only.
_BATCH = 200


class Replay:
    """A source of recorded payments; it ends with the file.

    The payments keep their own times: `created_at` is what the file says.
    """

    seed: int | None = None

    def __init__(
        self,
        file: Path,
        schema: PaymentSchema,
        *,
        mapping: str | None = None,
        pace: Pace | None = None,
        speed: float = 1,
    ) -> None:
        """Opens the file and checks its columns.

        Args:
            file: CSV, JSON lines or Parquet.
            schema: what a payment must carry.
            mapping: name of a shipped mapping or a YAML file; without one, columns are named like fields.
            pace: when payments are due; without one, as recorded.
            speed: multiple of the recorded pace: 60 replays an hour in a minute.

        Raises:
            UsageError: the file or the mapping can't be used; names the column.
        """
        if not 0 < speed < math.inf:
            raise UsageError(f"--speed {speed:g} is not accepted: give a multiple of the recorded pace, such as 1")
        self._file = TableFile(file)
        self._mapping = load_mapping(mapping, schema) if mapping else identity_mapping(self._file.columns, file, schema)
        missing = [column for column in self._mapping.columns if column not in self._file.columns]
        if missing:
            raise UsageError(
                f"--replay {file}: mapping {self._mapping.name} needs the column {missing[0]!r}; there are "
                f"{', '.join(map(repr, self._file.columns))}"
            )
        if pace is None and self._mapping.time_field is None:
            raise UsageError(f"--replay {file}: payments without a time have no recorded pace; give --rate")
        self._pace = pace
        self._speed = speed

    def batches(self, start_ms: int) -> Iterator[Batch]:  # noqa: ARG002 - recorded times stay as they are
        """See Source.

        Raises:
            UsageError: a row can't be read or converted; names the file, the rows and the column.
        """
        row = 0
        recorded = _RecordedPace(self._speed)
        for table in self._file.batches(self._mapping.columns):
            payments = convert(table, self._mapping, row + 1, f"--replay {self._file.path}")
            if self._pace is None:
                due_s = recorded.due_s(payments[str(self._mapping.time_field)])
            else:
                due_s = self._pace.due_s(row, table.num_rows)
            values = as_json_values(payments, self._mapping.types)
            for first in range(0, table.num_rows, _BATCH):
                yield _encode(values.slice(first, _BATCH), due_s[first : first + _BATCH])
            row += table.num_rows


class _RecordedPace:
    """Distances between recorded times; rows that go back in time are due with the latest before them."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._first_ms: float | None = None
        self._latest_s = 0.0

    def due_s(self, times: Any) -> NDArray[np.float64]:
        """Seconds after the first row, for timestamps in ms; without one, due with the row before."""
        ms = times.cast("int64").to_numpy(zero_copy_only=False).astype(np.float64)
        if self._first_ms is None:
            known = ms[~np.isnan(ms)]
            if len(known) == 0:
                return np.zeros(len(ms))
            self._first_ms = float(known[0])
        due = np.nan_to_num((ms - self._first_ms) / 1000 / self._speed, nan=0.0)
        due = np.maximum(np.maximum.accumulate(due), self._latest_s)
        self._latest_s = float(due[-1]) if len(due) else self._latest_s
        return due


def _encode(values: Any, due_s: NDArray[np.float64]) -> Batch:
    rows = values.to_pylist()
    keys = [None if row.get(_KEY) is None else str(row[_KEY]).encode() for row in rows]
    encoded: list[bytes | None] = [json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() for row in rows]
    return Batch(due_s, keys, encoded, flagged=None, malformed=np.zeros(len(rows), dtype=np.bool_))
