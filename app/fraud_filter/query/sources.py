"""Where records come from: Kafka, or Spark's rate source with payments made inside Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from fraud_filter.config import Settings
from fraud_filter.kafka.client import spark_kafka_options
from fraud_filter.modes import Mode
from fraud_filter.schema import Field, PaymentSchema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def read(spark: SparkSession, mode: Mode, schema: PaymentSchema, settings: Settings) -> DataFrame:
    """The records to judge: columns `_key`, `_value`, `_topic`, `_partition`, `_offset`, `_timestamp`."""
    if settings.source == "rate":
        return _rate(spark, schema, settings)
    return _kafka(spark, mode, settings)


def _kafka(spark: SparkSession, mode: Mode, settings: Settings) -> DataFrame:
    options = {
        **spark_kafka_options(settings),
        "subscribe": settings.input_topic,
        "startingOffsets": settings.starting_offsets,
        "failOnDataLoss": str(settings.fail_on_data_loss).lower(),
        "kafka.isolation.level": settings.kafka_isolation_level,
        **mode.source_options(settings),
        **settings.kafka_source_options,
    }
    records = spark.readStream.format("kafka").options(**options).load()
    names = ("key", "value", "topic", "partition", "offset", "timestamp")
    return records.select(*(F.col(name).alias(f"_{name}") for name in names))


def _rate(spark: SparkSession, schema: PaymentSchema, settings: Settings) -> DataFrame:
    """Payments derived from a counter, so the filter can be tried without Kafka."""
    partitions = settings.rate_partitions
    rows = (
        spark.readStream.format("rate")
        .option("rowsPerSecond", settings.rate_rows_per_second)
        .option("numPartitions", partitions)
        .load()
    )
    payment = F.to_json(F.struct(*(_made_up(field).alias(field.name) for field in schema.fields)))
    return rows.select(
        F.col("value").cast("string").cast("binary").alias("_key"),
        payment.cast("binary").alias("_value"),
        F.lit("rate").alias("_topic"),
        F.pmod("value", F.lit(partitions)).cast("int").alias("_partition"),
        F.floor(F.col("value") / partitions).alias("_offset"),
        F.col("timestamp").alias("_timestamp"),
    )


def _made_up(field: Field) -> Column:
    """A value of the field's type that varies with the counter."""
    spread = F.pmod(F.hash("value", F.lit(field.name)), F.lit(10_000))
    if field.type.startswith(("TIMESTAMP", "DATE")):
        return F.col("timestamp").cast(field.type)
    if field.type == "BOOLEAN":
        return spread % 2 == 0
    if field.type == "STRING":
        return F.concat(F.lit(f"{field.name}-"), spread.cast("string"))
    return spread.cast(field.type)
