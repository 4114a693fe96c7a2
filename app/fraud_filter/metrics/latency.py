"""A histogram of latencies in whole milliseconds. Knows neither Kafka nor Prometheus."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hdrh.histogram import HdrHistogram

#: Latencies up to this are kept apart; longer ones are counted here, and only `max_ms` tells them.
LIMIT_MS = 3_600_000
#: Significant digits: exact to 1 ms up to 262 s, to 16 ms at one hour. The histogram takes 6 MB.
_DIGITS = 5


@dataclass(frozen=True)
class Second:
    """One second of a measurement: `second` counts from 1; latencies are None when nothing came out."""

    second: int
    decisions: int
    p50_ms: float | None
    max_ms: float | None


class LatencyHistogram:
    """Counts latencies, in milliseconds. Not for several threads at once."""

    def __init__(self) -> None:
        self._histogram = HdrHistogram(1, LIMIT_MS, _DIGITS)
        self._max_ms = 0

    @property
    def count(self) -> int:
        """How many latencies were recorded."""
        return int(self._histogram.get_total_count())

    @property
    def max_ms(self) -> int | None:
        """The longest latency in milliseconds, also beyond LIMIT_MS; None when there is none."""
        return self._max_ms if self.count else None

    def record(self, latency_ms: int) -> None:
        """Counts one latency of 0 ms or more."""
        self._histogram.record_value(min(latency_ms, LIMIT_MS))
        self._max_ms = max(self._max_ms, latency_ms)

    def percentile_ms(self, percentile: float) -> int | None:
        """The latency in milliseconds that `percentile` percent (0 to 100) did not exceed; None when there is none."""
        if not self.count:
            return None
        return min(int(self._histogram.get_value_at_percentile(percentile)), self._max_ms)

    def distribution(self) -> dict[int, int]:
        """How often each latency occurred: milliseconds -> count, in ascending order."""
        counts = np.frombuffer(self._histogram.counts, dtype=np.uint64)  # HdrHistogram's own iterator takes a second
        return {int(self._histogram.get_value_from_index(int(at))): int(counts[at]) for at in np.flatnonzero(counts)}

    def reset(self) -> None:
        """Forgets everything."""
        self._histogram.reset()
        self._max_ms = 0
