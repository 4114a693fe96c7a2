"""Whether a mode can run the rows that a function made, by Spark's own checks; nothing is started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from fraud_filter.modes import MODES, Mode
from fraud_filter.query import invoke
from fraud_filter.query.preflight import check_plan, plan_nodes
from fraud_filter.query.user_query import load_user_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CHECKER = "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker"
#: Spark's checks of a mode; of the others it is the one of batches.
_CHECKS = {
    "continuous": ("checkForContinuous",),
    "real-time": ("checkForStreaming", "checkAdditionalRealTimeModeConstraints"),
}
_TWICE = "the query reads its records twice (a union, a join with itself), which real-time mode can't"
_PYTHON = "the query calls Python for its rows, which real-time mode can't: use functions of pyspark.sql.functions"


def find_verdicts(settings: Settings) -> tuple[dict[str, str], str]:
    """Of the setting `query`: by mode why it can't run it, and why the places of records are not known of its rows.

    "" where the mode can, and where they are. It is planned in a Spark of its own, without Kafka.

    Raises:
        UsageError: there is no such query, or it makes no rows.
    """
    from fraud_filter.query import sources
    from fraud_filter.spark import session

    query, mode = load_user_query(settings), MODES["micro-batch"]
    spark = session.start(settings.model_copy(update={"spark_master": "local[1]"}), mode)
    try:
        records = sources.read(spark, mode, query.schema, settings)
        rows = query.rows(records, settings)
        refusals: dict[str, str] = {name: find_refusal(rows, one) for name, one in MODES.items()}
        return refusals, query.why_without_places(rows, records)
    finally:
        spark.stop()


def find_refusal(rows: DataFrame, mode: Mode) -> str:
    """Why the mode can't run it, in one sentence; "" where it can."""
    from pyspark.errors import AnalysisException

    jvm: Any = rows.sparkSession._jvm
    plan, update = rows._jdf.queryExecution().analyzed(), jvm.org.apache.spark.sql.streaming.OutputMode.Update()
    try:
        check_plan(rows, mode)
        for check in _CHECKS.get(mode.name, ("checkForStreaming",)):
            getattr(invoke.java_class(jvm, _CHECKER), check)(plan, update)
    except UsageError as error:
        return str(error)
    except AnalysisException as error:
        return next(line.strip() for line in str(error).splitlines() if line.strip()).rstrip(";.")
    return _find_late_refusal(jvm, plan, mode)


def _find_late_refusal(jvm: Any, plan: Any, mode: Mode) -> str:
    """What Spark finds when it plans the first batch."""
    nodes = list(plan_nodes(plan))
    is_stateful = invoke.java_class(jvm, _CHECKER).isStatefulOperation
    if not mode.keeps_state and any(map(is_stateful, nodes)):
        return f"the query keeps state, which {mode.name} mode can't"
    if mode.name != "real-time":
        return ""
    if plan.containsPattern(jvm.org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF()):
        return _PYTHON
    return _TWICE if sum(node.isStreaming() and node.children().isEmpty() for node in nodes) > 1 else ""
