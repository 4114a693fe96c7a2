"""Percentiles of latencies in whole milliseconds, finer than a millisecond. Knows no Kafka.

Kafka stamps whole milliseconds, cut down. The difference of two such stamps is the latency plus noise between -1 and
+1 ms (triangular, mean 0, when arrivals are spread over the millisecond): a latency of 2.3 ms gives 2 seven times out
of ten, and 3 three times. So the share of differences up to k is the share of latencies up to x, averaged over x from
k to k + 1; it is placed in the middle, at k + 0.5, and the line between two such points is the distribution. That is
the percentile of grouped data, each value taken for the middle of a class one millisecond wide, as
`statistics.median_grouped` of Python's library does for the median.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

#: The percentiles of every table, by the name of their figure.
PERCENTILES: Mapping[str, float] = {"p50_ms": 50, "p90_ms": 90, "p99_ms": 99, "p999_ms": 99.9}


def counted(latencies_ms: Any) -> dict[int, int]:
    """How often each latency in whole milliseconds occurs, ascending."""
    values, counts = np.unique(np.asarray(latencies_ms, dtype=np.int64), return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def grouped_percentile(counts: Mapping[int, int], percentile: float) -> float | None:
    """The latency in milliseconds that `percentile` percent (0 to 100) do not exceed, to a tenth of a microsecond.

    Args:
        counts: number of latencies by whole milliseconds.

    Returns:
        None when there are none; never below 0, never above the longest.
    """
    if not counts:
        return None
    values = np.array(sorted(counts), dtype=np.float64)
    amounts = np.array([counts[int(value)] for value in values], dtype=np.float64)
    reached = np.cumsum(amounts)
    wanted = reached[-1] * percentile / 100
    at = int(min(np.searchsorted(reached, wanted), len(values) - 1))
    before = reached[at] - amounts[at]
    found = values[at] - 0.5 + (wanted - before) / amounts[at]
    return round(float(min(max(found, 0.0), values[-1])), 4)


def summarise(counts: Mapping[int, int]) -> dict[str, float | None]:
    """The named percentiles and `max_ms`, the longest in whole milliseconds."""
    figures = {name: grouped_percentile(counts, percentile) for name, percentile in PERCENTILES.items()}
    return {**figures, "max_ms": float(max(counts)) if counts else None}
