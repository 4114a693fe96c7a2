"""Replays a recorded file of payments: at the recorded pace, at a multiple of it, or at another pace."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fraud_filter.errors import UsageError
from fraud_filter.generator.pace import Pace
from fraud_filter.generator.selection import Selection
from fraud_filter.generator.source import Batch, encoded
from fraud_filter.schema import PaymentSchema

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
        select: str | None = None,
        pace: Pace | None = None,
        speed: float = 1,
    ) -> None:
        """Opens the file and checks its columns.

        Args:
            file: CSV, JSON lines or Parquet.
            schema: what a payment must carry.
            select: what makes records of the rows (see Selection); without one, columns are named like fields.
            pace: when payments are due; without one, as recorded.
            speed: multiple of the recorded pace: 60 replays an hour in a minute.

        Raises:
            UsageError: the file or the SELECT can't be used; names the column.
        """
        if not 0 < speed < math.inf:
            raise UsageError(f"--speed {speed:g} is not accepted: give a multiple of the recorded pace, such as 1")
        self._selection = Selection(file, select, schema)
        if pace is None and self._selection.time_field is None:
            raise UsageError(f"--replay {file}: records without a time have no recorded pace; give --rate")
        self._pace = pace
        self._speed = speed

    def batches(self, start_ms: int) -> Iterator[Batch]:  # noqa: ARG002 - recorded times stay as they are
        """See Source.

        Raises:
            UsageError: a row can't be read or typed; names the file and the column.
        """
        sent = 0
        recorded = _RecordedPace(self._speed)
        for rows in self._selection.rows(_BATCH):
            if self._pace is None:
                due_s = recorded.due_s(np.array([row[1] for row in rows], dtype=np.float64))
            else:
                due_s = self._pace.due_s(sent, len(rows))
            yield self._encode(rows, due_s)
            sent += len(rows)

    def _encode(self, rows: list[tuple[Any, ...]], due_s: NDArray[np.float64]) -> Batch:
        keys = [None if key is None else key.encode() for key, *_ in rows]
        names = self._selection.fields
        values: list[bytes | None] = [encoded(dict(zip(names, row[2:], strict=True))) for row in rows]
        return Batch(due_s, keys, values, flagged=None, malformed=np.zeros(len(rows), dtype=np.bool_))


class _RecordedPace:
    """Distances between recorded times; rows that go back in time are due with the latest before them."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._first_ms: float | None = None
        self._latest_s = 0.0

    def due_s(self, ms: NDArray[np.float64]) -> NDArray[np.float64]:
        """Seconds after the first row, for times in ms; without one (NaN), due with the row before."""
        if self._first_ms is None:
            known = ms[~np.isnan(ms)]
            if len(known) == 0:
                return np.zeros(len(ms))
            self._first_ms = float(known[0])
        due = np.nan_to_num((ms - self._first_ms) / 1000 / self._speed, nan=0.0)
        due = np.maximum(np.maximum.accumulate(due), self._latest_s)
        self._latest_s = float(due[-1]) if len(due) else self._latest_s
        return due
