"""Labelled payments to learn from: those of the input topic, of a file, or made up. Knows no model.

Whatever they come from, they have the payment's fields, `_partition`, `_offset` and `_timestamp`, by which windows are
told, `_is_rejected`, and `_label`: 1 for fraud, 0 for none, null where that is not known.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from fraud_filter.generator.pace import Steady
from fraud_filter.generator.payments import MadePayments, Shares
from fraud_filter.kafka.client import spark_kafka_options
from fraud_filter.query.decide import read_payments
from fraud_filter.schema import HEADER_LABEL, LEGITIMATE, PaymentSchema, input_schema
from fraud_filter.text.nearest import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: What a label says of a payment that is no fraud, in lower case.
_NO_FRAUD = ("0", "0.0", "false", "no", "none", LEGITIMATE.decode())
_FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
#: Made-up payments: 100 a second, a twentieth of them fraud; the day is a fixed one, so that a seed tells all.
_RATE, _SHARES, _START_MS = 100.0, Shares(flagged=0, malformed=0, fraud=0.05), 1_772_366_400_000


def from_topic(spark: SparkSession, settings: Settings, label: str = HEADER_LABEL) -> DataFrame:
    """The payments that the input topic retains, with the truth in their header `label`."""
    options = {**spark_kafka_options(settings), "subscribe": settings.input_topic, "includeHeaders": "true"}
    read = spark.read.format("kafka").options(**options).load()
    given = F.filter("headers", lambda header: header["key"] == label)
    names = ("key", "value", "topic", "partition", "offset", "timestamp")
    columns = (F.col(name).alias(f"_{name}") for name in names)
    records = read.select(*columns, F.get(given, F.lit(0))["value"].cast("string").alias("_said"))
    return _labelled(read_payments(records, input_schema(settings)))


def made_up(
    spark: SparkSession, settings: Settings, schema: PaymentSchema, *, payments: int, seed: int = 1
) -> DataFrame:
    """So many payments of the generator, with fraud among them."""
    source = MadePayments.for_settings(settings, Steady(_RATE), seed=seed, shares=_SHARES)
    rows: list[tuple[Any, ...]] = []
    for batch in itertools.takewhile(lambda _: len(rows) < payments, source.batches(_START_MS)):
        for due_s, key, value, label in zip(
            batch.due_s.tolist(), batch.keys, batch.values, batch.labels or (), strict=True
        ):
            rows.append((key, value, len(rows), _START_MS + round(due_s * 1000), (label or b"").decode()))
    frame = spark.createDataFrame(
        rows[:payments], "_key BINARY, _value BINARY, _offset BIGINT, _ms BIGINT, _said STRING"
    )
    records = frame.select(
        "_key",
        "_value",
        "_offset",
        "_said",
        F.lit(0).alias("_partition"),
        F.timestamp_millis("_ms").alias("_timestamp"),
    )
    return _labelled(read_payments(records, schema))


def from_file(spark: SparkSession, file: str, schema: PaymentSchema, *, label: str, time: str | None) -> DataFrame:
    """The rows of a Parquet, CSV (with names in its first line) or JSON lines file, or of a directory of Parquet.

    Args:
        label: name of the column with the truth.
        time: name of the column with the time of a payment; None: the first TIMESTAMP of the schema.

    Raises:
        UsageError: the file can't be read, or lacks a column.
    """
    from pyspark.errors import PySparkException

    kind = _FORMATS.get(Path(file.removesuffix(".gz")).suffix.lower(), "parquet")
    try:
        read = spark.read.format(kind).options(header="true").load(file)
    except PySparkException as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), "")
        raise UsageError(f"argument HISTORY: {file!r} can't be read as {kind}: {reason.strip()}") from None
    times = (field.name for field in schema.fields if field.type.startswith("TIMESTAMP"))
    time = time or next(times, None)
    if time is None:
        raise UsageError("argument --time: the schema has no TIMESTAMP; name the column with the time of a payment")
    for name in (label, time, *schema.required):
        if name not in read.columns:
            raise UsageError(
                f"argument HISTORY: {file!r} has no column {name!r}{did_you_mean(name, read.columns)}; "
                f"it has {', '.join(read.columns)}"
            )
    fields = (_field(read, field.name, field.type) for field in schema.fields)
    missing = (F.col(f"`{name}`").isNull() for name in schema.required)
    rows = read.select(
        *fields,
        F.col(f"`{label}`").cast("string").alias("_said"),
        F.col(f"`{time}`").cast("timestamp").alias("_timestamp"),
        F.monotonically_increasing_id().alias("_offset"),
        F.lit(0).alias("_partition"),
    )
    return _labelled(rows.select("*", _any(missing).alias("_is_rejected")))


def _field(read: DataFrame, name: str, kind: str) -> Column:
    found = F.col(f"`{name}`") if name in read.columns else F.lit(None)
    return found.cast(kind).alias(name)


def _any(conditions: Any) -> Column:
    return F.coalesce(F.array_max(F.array(F.lit(False), *conditions)), F.lit(False))


def _labelled(rows: DataFrame) -> DataFrame:
    said = F.lower(F.trim("_said"))
    label = F.when(said.isNotNull() & (said != ""), (~said.isin(*_NO_FRAUD)).cast("double"))
    return rows.select("*", label.alias("_label")).drop("_said")
