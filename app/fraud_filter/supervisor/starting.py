"""The query, from its source to its sink, handed to Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from fraud_filter.modes import V1_CHECKPOINTS
from fraud_filter.query import preflight
from fraud_filter.supervisor.failures import explain_failure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


@dataclass(frozen=True)
class Prepared:
    """Decisions that were built before, with these settings and this topic id: building them takes Spark some time."""

    settings: Settings
    topic_id: str
    decisions: DataFrame
    watermark_ms: int = 0


def prepare(
    spark: SparkSession, inputs: preflight.Inputs, settings: Settings, topic_id: str, watermark_ms: int = 0
) -> Prepared:
    """The decisions over `inputs`; `topic_id` is that of the input topic, or "", `watermark_ms` as of `decide`.

    Raises:
        UsageError: they hold what the mode can't run.
    """
    from fraud_filter.query import decide as query
    from fraud_filter.query import sources

    if inputs.rules.features:
        spark.conf.set(V1_CHECKPOINTS, "false")
    records = sources.read(spark, inputs.mode, inputs.schema, settings)
    decisions = query.decide(
        records, inputs.schema, inputs.rules, settings, topic_id, inputs.model, watermark_ms=watermark_ms
    )
    preflight.check_plan(decisions, inputs.mode)
    return Prepared(settings, topic_id, decisions, watermark_ms)


def start_query(
    spark: SparkSession,
    inputs: preflight.Inputs,
    settings: Settings,
    topic_id: str,
    prepared: Prepared | None = None,
    watermark_ms: int = 0,
) -> StreamingQuery:
    """Starts the query over `inputs`, from what was `prepared` where that fits; `watermark_ms` as of `decide`.

    Raises:
        UsageError: Spark refuses it in this mode.
        FraudFilterError: Spark fails, perhaps for a while.
    """
    from fraud_filter.query import sinks

    wanted = settings, topic_id, watermark_ms
    if prepared is None or (prepared.settings, prepared.topic_id, prepared.watermark_ms) != wanted:
        prepared = prepare(spark, inputs, *wanted)
    return start(sinks.write(prepared.decisions, inputs.mode, settings), settings)


def start(writer: DataStreamWriter, settings: Settings) -> StreamingQuery:
    """Starts a query.

    Raises:
        UsageError: Spark refuses it in this mode.
        FraudFilterError: Spark fails, perhaps for a while.
    """
    from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException, PySparkException

    try:
        return writer.start()
    except (AnalysisException, ParseException, IllegalArgumentException) as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise UsageError(f"the query can't start in {settings.mode} mode: {reason.strip()}") from None
    except PySparkException as error:
        raise explain_failure(error, settings) from None
