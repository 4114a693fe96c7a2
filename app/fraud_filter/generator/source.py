"""What the sender sends: batches of ready records, and the interface of whatever makes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Batch:
    """Records that are ready to be sent, in the order in which they are due.

    Attributes:
        due_s: seconds after the start at which each one is to be sent, rising.
        keys: Kafka keys (the card, so that its payments stay in order).
        values: Kafka values; None is a record without a value.
        flagged: which were made to match a rule; None where that is not known (a replayed file).
        malformed: which were made unreadable on purpose.
        labels: of each one what it is in truth, or None; None for all where nothing is labelled.
    """

    due_s: NDArray[np.float64]
    keys: list[bytes | None]
    values: list[bytes | None]
    flagged: NDArray[np.bool_] | None
    malformed: NDArray[np.bool_]
    labels: list[bytes | None] | None = None

    def first(self, size: int) -> Batch:
        """The first `size` records of the batch."""
        flagged = None if self.flagged is None else self.flagged[:size]
        labels = None if self.labels is None else self.labels[:size]
        return Batch(self.due_s[:size], self.keys[:size], self.values[:size], flagged, self.malformed[:size], labels)


class Source(Protocol):
    """Makes records for the sender. `seed` is what they were drawn from, None where nothing is drawn."""

    @property
    def seed(self) -> int | None: ...  # noqa: D102

    def batches(self, start_ms: int) -> Iterator[Batch]:
        """The batches of one run that starts `start_ms` milliseconds after 1970-01-01T00:00:00Z.

        A source that never ends is stopped by the sender. A batch holds at most a few hundred records: making
        one holds up the sender.
        """
        ...


def encoded(record: Any) -> bytes:
    """A record as JSON; times, which are UTC without a zone, become ISO 8601 with milliseconds, or microseconds."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), default=_as_text).encode()


def _as_text(value: date | datetime) -> str:
    if not isinstance(value, datetime):
        return value.isoformat()
    return value.isoformat(timespec="microseconds" if value.microsecond % 1000 else "milliseconds") + "Z"
