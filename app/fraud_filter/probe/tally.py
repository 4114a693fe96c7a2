"""What the probe counts over a stretch of time, its histogram of latencies, and how it tells a repeated decision."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from hdrh.histogram import HdrHistogram
from pyroaring import BitMap64

from fraud_filter.kafka.consumer import CLOCKS_MS

#: Latencies up to this are kept apart; longer ones are counted here, and only `max_ms` tells them.
LIMIT_MS = 3_600_000
#: Significant digits: exact to 1 ms up to 262 s, to 16 ms at one hour. The histogram takes 6 MB.
_DIGITS = 5
_COUNTED = ("flagged", "approved", "rejected", "duplicates", "unreadable", "negative")


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


@dataclass(frozen=True)
class ProbeSnapshot:
    """What was seen in a stretch of time. Latencies are in milliseconds and None while nothing was measured.

    `flagged`, `approved` and `rejected` count records, repeated ones too; `duplicates` are those of them whose payment
    had been decided before; `unreadable` lack the source headers; `negative` bear an earlier time than their payment.
    `count` latencies were measured: those of first decisions. `within_objective` is the part of them, 0 to 1, that took
    no longer than the objective. `source_offsets` has the highest decided offset of each input partition and
    `last_seen_age_s` the seconds since the last record, both since the start.
    """

    flagged: int
    approved: int
    rejected: int
    duplicates: int
    unreadable: int
    negative: int
    count: int
    p50_ms: int | None
    p90_ms: int | None
    p95_ms: int | None
    p99_ms: int | None
    p999_ms: int | None
    max_ms: int | None
    within_objective: float | None
    last_seen_age_s: float | None
    source_offsets: dict[int, int]

    @property
    def decisions(self) -> int:
        """All records, repeated ones too."""
        return self.flagged + self.approved + self.rejected

    def to_dict(self) -> dict[str, Any]:
        """For JSON; what was not measured is left out."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass
class Tally:
    """Counts, by their names in the snapshot, and latencies of a window of time; `slow` ones exceed the objective."""

    objective_ms: int
    counts: Counter[str] = field(default_factory=Counter)
    slow: int = 0
    latencies: LatencyHistogram = field(default_factory=LatencyHistogram)

    def reset(self) -> None:
        """Begins a new window."""
        self.counts.clear()
        self.slow = 0
        self.latencies.reset()

    def record(self, latency_ms: int) -> None:
        """Counts one latency of 0 ms or more."""
        self.latencies.record(latency_ms)
        self.slow += latency_ms > self.objective_ms

    def snapshot(self, last_seen_age_s: float | None, source_offsets: dict[int, int]) -> ProbeSnapshot:
        """The window so far."""
        return ProbeSnapshot(
            **{name: self.counts[name] for name in _COUNTED},
            count=self.latencies.count,
            p50_ms=self.latencies.percentile_ms(50),
            p90_ms=self.latencies.percentile_ms(90),
            p95_ms=self.latencies.percentile_ms(95),
            p99_ms=self.latencies.percentile_ms(99),
            p999_ms=self.latencies.percentile_ms(99.9),
            max_ms=self.latencies.max_ms,
            within_objective=self._within_objective(),
            last_seen_age_s=last_seen_age_s,
            source_offsets=source_offsets,
        )

    def _within_objective(self) -> float | None:
        count = self.latencies.count
        return round((count - self.slow) / count, 6) if count else None


class SeenOffsets:
    """Which of the latest offsets of one input partition were decided already.

    Memory is bounded: a repetition is found when it is less than WINDOW offsets behind the newest one. Further back it
    is taken for a first decision; the audit counts exactly.

    In a topic that was recreated offsets begin at 0 again. Append times tell: in a partition they rise with the offset,
    so that a lower one with a later time, later by more than the clocks of two brokers differ, is of another topic.
    """

    WINDOW = 2**20

    def __init__(self) -> None:
        self.newest = -1
        self._newest_ms = 0
        self._seen = BitMap64()

    def add(self, offset: int, appended_ms: int = 0) -> bool:
        """Notes a decision on the payment at `offset`, appended at that time (milliseconds since 1970).

        Returns:
            whether this offset was noted before.
        """
        if offset <= self.newest and appended_ms > self._newest_ms + CLOCKS_MS:
            self.newest = -1
            self._seen.clear()
        if offset > self.newest:
            self.newest, self._newest_ms = offset, appended_ms
            self._seen.remove_range(0, max(offset - self.WINDOW + 1, 0))
        elif offset <= self.newest - self.WINDOW:
            return False
        seen = offset in self._seen
        self._seen.add(offset)
        return seen
