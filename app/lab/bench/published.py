"""Queries that others have published latencies of, written anew from their descriptions: docs/results/published.md.

Each takes the columns of Spark's Kafka source. Those with state write the place of the record that a row tells of into
its headers themselves, so that its latency is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_PLACE = ("topic", "partition", "offset", "timestamp")
_NEWEST_PLACE = tuple(f"newest.{name}" for name in _PLACE)
#: Keys in one partition of the input; of five partitions there are a thousand.
_KEYS = 200
_TABLE_ROWS = 10_000


def encode(records: DataFrame) -> DataFrame:
    """Apache Spark, RTMKafkaKafkaBenchmark: the value as base64."""
    return records.select("key", F.base64("value").alias("value"))


def drop_duplicates(records: DataFrame) -> DataFrame:
    """Apache Spark, RTMKafkaDropDuplicatesBenchmark: each fifth record has the key of the one before it."""
    repeats = (F.col("offset") % 5 == 4).cast("bigint")
    key = F.concat_ws("-", "partition", F.col("offset") - repeats)
    kept = records.withColumn("unique", key).dropDuplicates(["unique"])
    return kept.select("key", "value", _headers(*_PLACE))


def count_in_windows(records: DataFrame) -> DataFrame:
    """Apache Spark, RTMKafkaWindowAggregationBenchmark: records of each of a thousand keys in each minute."""
    key = F.concat_ws("-", "partition", F.col("offset") % _KEYS)
    window = F.window("timestamp", "1 minute")
    counts = records.groupBy(window, key.alias("key")).agg(F.count("*").alias("count"), _newest())
    return counts.select("key", F.col("count").cast("string").alias("value"), _headers(*_NEWEST_PLACE))


def encode_start(records: DataFrame) -> DataFrame:
    """Databricks, query A: the first 500,000 bytes of the value as base64."""
    return records.select("key", F.base64(F.substring("value", 1, 500_000)).alias("value"))


def count_values(records: DataFrame) -> DataFrame:
    """Databricks, query B: as A, with the number of records of the same value and time."""
    value = F.substring(F.col("value").cast("string"), 1, 500_000)
    counts = records.groupBy("timestamp", value.alias("text")).agg(F.count("*").alias("count"), _newest())
    text = F.base64(F.concat_ws(",", "count", "text")).alias("value")
    return counts.select(text, _headers(*_NEWEST_PLACE))


def join_with_table(records: DataFrame) -> DataFrame:
    """Databricks, query C: as A, joined with a table of 10,000 rows, by a number that the record's place gives."""
    numbers = records.sparkSession.range(_TABLE_ROWS)
    table = numbers.select(F.col("id").alias("number"), (F.col("id") * 2).alias("twice"))
    number = F.pmod(F.xxhash64("partition", "offset"), F.lit(_TABLE_ROWS))
    joined = records.withColumn("number", number).join(F.broadcast(table), "number")
    start = F.substring(F.col("value").cast("string"), 1, 500_000)
    return joined.select("key", F.base64(F.concat_ws(",", "twice", start)).alias("value"))


def _newest() -> Column:
    """Of records of one partition the place of the last one."""
    return F.max_by(F.struct(*_PLACE), "offset").alias("newest")


def _headers(topic: str, partition: str, offset: str, timestamp: str) -> Column:
    """The place of a record, as the filter writes it."""
    texts = {"topic": topic, "partition": partition, "offset": offset}
    values = {name: F.col(column).cast("string") for name, column in texts.items()}
    values["timestamp"] = F.unix_millis(timestamp).cast("string")
    headers = (
        F.struct(F.lit(f"source.{name}").alias("key"), text.cast("binary").alias("value"))
        for name, text in values.items()
    )
    return F.array(*headers).alias("headers")
