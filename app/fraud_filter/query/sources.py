"""Where records come from: Kafka, the lines of a TCP server, made inside Spark, or any other format of Spark's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from fraud_filter.config import Settings, refused
from fraud_filter.kafka.client import spark_kafka_options
from fraud_filter.modes import Mode
from fraud_filter.query.preflight import rate_partitions
from fraud_filter.schema import PaymentSchema
from fraud_filter.spark.session import first_line
from fraud_filter.text.ddl import Kind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


#: Formats of files, which have no schema of their own while they stream.
_FILES = ("csv", "json", "orc", "parquet", "xml")

#: What else a format may tell of a record, by Kafka's names and with its types, and what stands for it.
_PLACE = {
    "key": ("binary", None), "topic": ("string", None), "partition": ("int", 0), "offset": ("bigint", -1),
    "timestamp": ("timestamp", None),
}  # fmt: skip


def read(spark: SparkSession, mode: Mode, schema: PaymentSchema, settings: Settings, partitions: int = 0) -> DataFrame:
    """The records to judge: columns `_key`, `_value`, `_topic`, `_partition`, `_offset`, `_timestamp`.

    For a query of the user's also `_headers`.

    `partitions`: how many the input topic has.
    """
    if settings.source == "rate":
        return _rate(spark, schema, settings)
    if settings.source == "socket":
        return _socket(spark, settings)
    if settings.source_kind == "format":
        return _format(spark, schema, settings)
    return _kafka(spark, mode, settings, partitions)


def _kafka(spark: SparkSession, mode: Mode, settings: Settings, partitions: int) -> DataFrame:
    records = spark.readStream.format("kafka").options(**kafka_source(mode, settings, partitions)).load()
    return _named(records, *(["headers"] if settings.query else []))


def kafka_source(mode: Mode, settings: Settings, partitions: int) -> dict[str, str]:
    """The options of the query's Kafka source; `partitions`: how many the input topic has."""
    topic = settings.input_topic
    # Of a topic, continuous mode's engine reads added partitions after it has begun again from the last commit by
    # itself: it would write decisions twice. Of named partitions there are never more (the watchdog looks for them).
    assigned = {"assign": json.dumps({topic: list(range(partitions))})}
    return {
        **spark_kafka_options(settings),
        # Between batches Spark asks for offsets. Of a broker that died it waits so long (Kafka's default is 60 s) until
        # it asks those that are there.
        "kafka.default.api.timeout.ms": "30000",
        **({"includeHeaders": "true"} if settings.query else {}),
        **(assigned if mode.holds_tasks else {"subscribe": topic}),
        "startingOffsets": settings.starting_offsets,
        "failOnDataLoss": str(settings.fail_on_data_loss).lower(),
        "kafka.isolation.level": settings.kafka_isolation_level,
        **mode.source_options(settings),
        **settings.kafka_source_options,
    }


def read_range(spark: SparkSession, settings: Settings, spans: Mapping[int, tuple[int, int]]) -> DataFrame:
    """The same columns of the input topic's records from the first to before the second offset, by partition."""
    first, end = ({str(number): span[at] for number, span in spans.items()} for at in (0, 1))
    options = {
        **spark_kafka_options(settings),
        "assign": json.dumps({settings.input_topic: sorted(spans)}),
        "startingOffsets": json.dumps({settings.input_topic: first}),
        "endingOffsets": json.dumps({settings.input_topic: end}),
        "failOnDataLoss": "false",
        "kafka.isolation.level": settings.kafka_isolation_level,
        **settings.kafka_source_options,
        # A poll unpacks all records that it gives: one at a time, so that none fails for what comes behind it.
        "kafka.max.poll.records": "1",
    }
    return _named(spark.read.format("kafka").options(**options).load())


def _named(records: DataFrame, *more: str) -> DataFrame:
    names = ("key", "value", "topic", "partition", "offset", "timestamp", *more)
    return records.select(*(F.col(name).alias(f"_{name}") for name in names))


def _rate(spark: SparkSession, schema: PaymentSchema, settings: Settings) -> DataFrame:
    """Payments derived from a counter, so the filter can be tried without Kafka."""
    partitions = rate_partitions(settings)
    given = {"rowsPerSecond": "100", **settings.source_options, "numPartitions": str(partitions)}
    rows = spark.readStream.format("rate").options(**given).load()
    payment = F.to_json(F.struct(*(made_up(field.name, field.kind).alias(field.name) for field in schema.fields)))
    return rows.select(
        F.col("value").cast("string").cast("binary").alias("_key"),
        payment.cast("binary").alias("_value"),
        F.lit("rate").alias("_topic"),
        F.pmod("value", F.lit(partitions)).cast("int").alias("_partition"),
        F.floor(F.col("value") / partitions).alias("_offset"),
        F.col("timestamp").alias("_timestamp"),
    )


def _socket(spark: SparkSession, settings: Settings) -> DataFrame:
    """A record for each line. They have no key, and no offset that would be the same after a restart."""
    given = {"host": "127.0.0.1", "port": "9999", **settings.source_options, "includeTimestamp": "true"}
    # Continuous mode only. Spark's driver reads the one connection, whatever their number.
    lines = spark.readStream.format("socket").options(**given, numPartitions="1").load()
    return lines.select(
        F.lit(None).cast("binary").alias("_key"),
        F.col("value").cast("binary").alias("_value"),
        F.lit("socket").alias("_topic"),
        F.lit(0).alias("_partition"),
        F.lit(-1).cast("bigint").alias("_offset"),
        F.col("timestamp").alias("_timestamp"),
    )


def _format(spark: SparkSession, schema: PaymentSchema, settings: Settings) -> DataFrame:
    """The rows of any format: its column `value` where that is text or bytes, else all of its columns as JSON.

    Raises:
        UsageError: Spark has no such format, or refuses its options.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    name = settings.source
    reader = spark.readStream.format(name).options(**settings.source_options)
    try:
        rows = (reader.schema(schema.ddl) if name in _FILES else reader).load()
    except (PySparkException, Py4JJavaError) as error:  # of a missing class Spark tells without a class of PySpark's
        advice = "check its name and source_options; spark.jars.packages in spark_conf brings its jars"
        raise refused("source", name, f"can't be read: {first_line(error)}", advice) from None
    types = {} if name in _FILES else dict(rows.dtypes)
    value = F.col("value") if types.get("value") in ("string", "binary") else F.to_json(F.struct("*"))
    there = {column: F.lit(other).cast(kind) for column, (kind, other) in _PLACE.items()}
    there["topic"] = F.lit(name)
    there |= {column: F.col(column) for column, (kind, _) in _PLACE.items() if types.get(column) == kind}
    if types.get("key") == "string":
        there["key"] = F.col("key").cast("binary")
    return rows.select(
        value.cast("binary").alias("_value"), *(column.alias(f"_{part}") for part, column in there.items())
    )


def made_up(name: str, kind: Kind) -> Column:
    """A value of a type that varies with the counter in the column `value`; times are those in `timestamp`."""
    if kind.name == "STRUCT":
        return F.struct(*(made_up(part, of).alias(part) for part, of in kind.parts))
    if kind.name in ("ARRAY", "MAP"):
        element = made_up(name, kind.parts[0][1])
        return F.array(element) if kind.name == "ARRAY" else F.create_map(F.lit(name), element)
    spread = F.pmod(F.hash("value", F.lit(name)), F.lit(10_000))
    if kind.name in ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE"):
        return F.col("timestamp").cast(kind.name)
    if kind.name == "BOOLEAN":
        return spread % 2 == 0
    if kind.name == "STRING":
        return F.concat(F.lit(f"{name}-"), spread.cast("string"))
    return F.coalesce(spread.cast(str(kind)), F.lit(0).cast(str(kind)))  # a DECIMAL may have no room for it
