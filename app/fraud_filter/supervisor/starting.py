"""The query, from its source to its sink, handed to Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from fraud_filter.query import preflight
from fraud_filter.supervisor.failures import explain_failure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def start_query(spark: SparkSession, inputs: preflight.Inputs, settings: Settings, topic_id: str) -> StreamingQuery:
    """Starts the query over `inputs`; `topic_id` is that of the input topic, or "".

    Raises:
        UsageError: Spark refuses it in this mode.
        FraudFilterError: Spark fails, perhaps for a while.
    """
    from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException, PySparkException

    from fraud_filter.query import decide as query
    from fraud_filter.query import sinks, sources

    records = sources.read(spark, inputs.mode, inputs.schema, settings)
    decisions = query.decide(records, inputs.schema, inputs.rules, settings, topic_id)
    preflight.check_plan(decisions, inputs.mode)
    try:
        return sinks.write(decisions, inputs.mode, settings).start()
    except (AnalysisException, ParseException, IllegalArgumentException) as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise UsageError(f"the query can't start in {settings.mode} mode: {reason.strip()}") from None
    except PySparkException as error:
        raise explain_failure(error, settings) from None
