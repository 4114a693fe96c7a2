"""When each payment is due: steadily or in bursts, by formulas over its number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fraud_filter.errors import UsageError

Seconds = NDArray[np.float64]


class Pace(Protocol):
    """Tells when payments are due. Payments are numbered from 0; the first one is due at once."""

    def due_s(self, first: int, count: int) -> Seconds:
        """Seconds after the start at which payments `first` to `first + count - 1` are due, rising."""
        ...


def check_rate(option: str, rate: float) -> None:
    """Raises UsageError, naming the option, unless `rate` is above 0 and at most a million payments/s."""
    if not 0 < rate <= 1_000_000:
        raise UsageError(f"{option} {rate:g} is not accepted: give records per second, above 0, at most 1000000")


@dataclass(frozen=True)
class Steady:
    """`rate` payments/s, evenly spaced."""

    rate: float

    def __post_init__(self) -> None:
        check_rate("--rate", self.rate)

    def due_s(self, first: int, count: int) -> Seconds:
        """See Pace."""
        return np.arange(first, first + count) / self.rate


@dataclass(frozen=True)
class Burst:
    """`rate` payments/s, but `burst_rate` in the last `burst_length` of every `burst_every` seconds."""

    rate: float
    burst_rate: float
    burst_every: float
    burst_length: float

    def __post_init__(self) -> None:
        check_rate("--rate", self.rate)
        check_rate("--burst-rate", self.burst_rate)
        if not 0 < self.burst_length < self.burst_every < math.inf:
            raise UsageError(
                f"--burst-length {self.burst_length:g} with --burst-every {self.burst_every:g} is not "
                "accepted: give seconds, the length above 0 and below the other"
            )

    def due_s(self, first: int, count: int) -> Seconds:
        """See Pace."""
        quiet_s = self.burst_every - self.burst_length
        quiet = self.rate * quiet_s
        period, within = np.divmod(
            np.arange(first, first + count, dtype=np.float64), quiet + self.burst_rate * self.burst_length
        )
        calm = np.minimum(within, quiet) / self.rate
        due: Seconds = period * self.burst_every + calm + np.maximum(within - quiet, 0) / self.burst_rate
        return due
