"""What is sent and when: batches of ready records, the interface of whatever makes them, and paces.

A pace is a formula over the number of a record: steady, or at random.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fraud_filter.errors import UsageError

Seconds = NDArray[np.float64]


class Pace(Protocol):
    """Tells when payments are due. Payments are numbered from 0; the first one is due at once."""

    def due_s(self, first: int, count: int) -> Seconds:
        """Seconds after the start at which payments `first` to `first + count - 1` are due, rising."""
        ...


def check_rate(rate: float) -> None:
    """Raises UsageError unless `rate` is above 0 and at most a million payments/s."""
    if not 0 < rate <= 1_000_000:
        raise UsageError(f"--rate {rate:g} is not accepted: give records per second, above 0, at most 1000000")


@dataclass(frozen=True)
class Steady:
    """`rate` payments/s, evenly spaced."""

    rate: float

    def __post_init__(self) -> None:
        check_rate(self.rate)

    def due_s(self, first: int, count: int) -> Seconds:
        """See Pace."""
        return np.arange(first, first + count) / self.rate


#: Records that arrive at random within the time that they take at a steady rate.
_BLOCK = 1000


@dataclass(frozen=True)
class AtRandom:
    """`rate` payments/s at random moments, drawn by `seed`: a Poisson process.

    But each thousand takes as long as at a steady pace, so that a run has the rate that was asked for.
    """

    rate: float
    seed: int

    def __post_init__(self) -> None:
        check_rate(self.rate)

    def due_s(self, first: int, count: int) -> Seconds:
        """See Pace."""
        blocks = range(first // _BLOCK, (first + count - 1) // _BLOCK + 1)
        moments = [block + np.sort(np.random.default_rng([self.seed, block]).random(_BLOCK)) for block in blocks]
        begin = first % _BLOCK
        return np.concatenate(moments)[begin : begin + count] * _BLOCK / self.rate


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
