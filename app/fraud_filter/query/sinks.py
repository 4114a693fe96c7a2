"""Where decisions go: Kafka, the console, or a table in memory to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from fraud_filter.config import Settings
from fraud_filter.kafka.client import spark_kafka_options
from fraud_filter.modes import Mode
from fraud_filter.query.record_size import most_written_bytes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

#: Kafka's default of buffer.memory.
_BUFFER_BYTES = 33_554_432


def write(decisions: DataFrame, mode: Mode, settings: Settings) -> DataStreamWriter:
    """The query, ready to start: sink, trigger, output mode, checkpoint and the mode's own options."""
    if settings.sink == "kafka":
        largest = most_written_bytes(settings)
        options = {
            **spark_kafka_options(settings),
            "includeHeaders": "true",
            # The producer refuses a record above either.
            "kafka.max.request.size": str(largest),
            "kafka.buffer.memory": str(max(largest, _BUFFER_BYTES)),
            "kafka.linger.ms": str(settings.linger_ms),
            **settings.kafka_sink_options,
        }
        writer = decisions.writeStream.format("kafka").options(**options)
    elif settings.sink == "console":
        writer = _legible(decisions).writeStream.format("console").option("truncate", "false")
    else:
        writer = _legible(decisions).writeStream.format("memory")
    trigger = mode.trigger(settings)
    return (
        writer.queryName(settings.query_name if settings.sink != "memory" else settings.query_name.replace("-", "_"))
        .outputMode(mode.output_mode)
        .options(**mode.query_options(settings))
        .option("checkpointLocation", settings.checkpoint)
        .trigger(**trigger)  # one argument, named by the mode
    )


def _legible(decisions: DataFrame) -> DataFrame:
    """Text instead of bytes, for eyes."""
    headers = F.transform("headers", lambda header: F.concat_ws("=", header["key"], header["value"].cast("string")))
    return decisions.select(
        "topic",
        F.col("key").cast("string").alias("key"),
        F.col("value").cast("string").alias("value"),
        headers.alias("headers"),
    )
