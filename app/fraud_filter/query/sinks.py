"""Where decisions go: Kafka, the console, or a table in memory to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from fraud_filter.config import Settings
from fraud_filter.kafka.client import spark_kafka_options
from fraud_filter.modes import Mode
from fraud_filter.query.once import signed
from fraud_filter.records import most_written_bytes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

#: Kafka's default of buffer.memory.
_BUFFER_BYTES = 33_554_432


def write(decisions: DataFrame, mode: Mode, settings: Settings, writer_id: int) -> DataStreamWriter:
    """The query, ready to start: sink, trigger, output mode, checkpoint and the mode's own options.

    Args:
        decisions: as `decide` gives them.
        writer_id: the generation of the filter that starts, for Kafka alone.
    """
    if settings.sink == "kafka":
        writer = signed(decisions, writer_id).writeStream.format("kafka").options(**_kafka_options(settings))
    elif settings.sink == "console":
        # Continuous mode's console asks for the active session of this thread.
        session = decisions.sparkSession
        session._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)  # type: ignore[union-attr]
        writer = _legible(decisions).writeStream.format("console").option("truncate", "false")
    else:
        writer = _legible(decisions).writeStream.format("memory")
    name = settings.query_name if settings.sink != "memory" else settings.query_name.replace("-", "_")
    return _triggered(writer.queryName(name), mode, settings, settings.checkpoint).options(
        **mode.query_options(settings)
    )


def discard(decisions: DataFrame, mode: Mode, settings: Settings, checkpoint: str) -> DataStreamWriter:
    """The same query with another checkpoint, whose decisions are computed and go nowhere."""
    writer = signed(decisions, 0).writeStream.format("noop").queryName(f"{settings.query_name}-warm-up")
    return _triggered(writer, mode, settings, checkpoint)


def write_range(decisions: DataFrame, settings: Settings, writer_id: int) -> None:
    """Writes decisions that are all there; where the sink is not Kafka they are computed and go nowhere.

    Args:
        decisions: as `decide` gives them.
        writer_id: the generation of the filter that starts.
    """
    if settings.sink == "kafka":
        signed(decisions, writer_id).write.format("kafka").options(**_kafka_options(settings)).save()
    else:
        decisions.write.format("noop").mode("overwrite").save()


def open_producers(spark: SparkSession, settings: Settings, count: int) -> None:
    """Has `count` tasks open a Kafka producer each and write nothing: classes are loaded, logins tried."""
    nothing = spark.range(0, count, 1, count).where(F.col("id") < 0)
    records = nothing.select(F.col("id").cast("string").cast("binary").alias("value"))
    options = _kafka_options(settings)
    records.write.format("kafka").options(**options).option("topic", settings.flagged_topic).save()


def _triggered(writer: DataStreamWriter, mode: Mode, settings: Settings, checkpoint: str) -> DataStreamWriter:
    trigger = mode.trigger(settings)
    output_mode = "update" if settings.query else mode.output_mode  # an aggregate gives its row after each change
    return (
        writer.outputMode(output_mode).option("checkpointLocation", checkpoint).trigger(**trigger)
    )  # one argument, named by the mode


def _kafka_options(settings: Settings) -> dict[str, str]:
    largest = most_written_bytes(settings)
    return {
        **spark_kafka_options(settings),
        "includeHeaders": "true",
        # The producer refuses a record above either.
        "kafka.max.request.size": str(largest),
        "kafka.buffer.memory": str(max(largest, _BUFFER_BYTES)),
        "kafka.linger.ms": str(settings.linger_ms),
        **settings.kafka_sink_options,
    }


def _legible(decisions: DataFrame) -> DataFrame:
    """Text instead of bytes, for eyes."""
    headers = F.transform("headers", lambda header: F.concat_ws("=", header["key"], header["value"].cast("string")))
    return decisions.select(
        "topic",
        F.col("key").cast("string").alias("key"),
        F.col("value").cast("string").alias("value"),
        headers.alias("headers"),
    )
