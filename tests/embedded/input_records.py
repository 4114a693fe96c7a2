"""The records of the input topic as the query is given them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

COLUMNS = "_key BINARY, _value BINARY, _topic STRING, _partition INT, _offset BIGINT, _timestamp TIMESTAMP"


def input_records(spark: Any, values: Sequence[bytes | None]) -> Any:
    """One record for each value, from offset 0 on in partition 1, all with the same append time."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    rows = [(f"k{offset}".encode(), value, "payments", 1, offset, None) for offset, value in enumerate(values)]
    appended = F.timestamp_millis(F.lit(1_700_000_000_123))
    return spark.createDataFrame(rows, COLUMNS).withColumn("_timestamp", appended)
