"""The contenders' names, and which of them are compared. Knows nothing of how they run."""

from __future__ import annotations

from typing import get_args

from fraud_filter.config import ModeName

MODE_NAMES: tuple[ModeName, ...] = get_args(ModeName)
SINGLE = "continuous-single"
FLOOR = "floor"
FLINK = "flink"

#: All contenders, in the order in which they are shown, with a word on each.
CONTENDERS: dict[str, str] = {
    "micro-batch": "the filter in micro-batch mode",
    "async-progress": "the filter in micro-batch mode with asynchronous progress tracking",
    "continuous": "the filter in continuous mode",
    SINGLE: "the filter in continuous mode, one record a poll: for up to 1,000 payments/s a partition",
    "real-time": "the filter in real-time mode",
    FLOOR: "a plain loop on librdkafka: consume, decide, produce",
    FLINK: "Apache Flink, one SQL statement",
}

#: Pairs whose latencies are set against each other, the first divided by the second.
RATIOS: tuple[tuple[str, str], ...] = (
    ("real-time", FLOOR),
    ("continuous", FLOOR),
    (SINGLE, FLOOR),
    ("real-time", FLINK),
    ("micro-batch", "continuous"),
    ("micro-batch", "async-progress"),
)
