"""Whether a mode can run the rows that a function made, by Spark's own checks; nothing is started."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from fraud_filter.modes import MODES, Mode
from fraud_filter.query import invoke, sources
from fraud_filter.query.preflight import calls_python, check_plan, plan_nodes
from fraud_filter.query.user_query import load_user_query
from fraud_filter.spark import session

_CHECKER = "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker"
#: Spark's checks of a mode; of the others it is the one of batches.
_CHECKS = {
    "continuous": ("checkForContinuous",),
    "real-time": ("checkForStreaming", "checkAdditionalRealTimeModeConstraints"),
}
_JOINS = "org.apache.spark.sql.catalyst.optimizer.PushDownLeftSemiAntiJoin"
_JOIN = "the query joins by something else than equal columns, or a table not broadcast, which real-time mode can't"
_TWICE = "the query reads its records twice (a union, a join with itself), which real-time mode can't"
_PYTHON = "the query calls Python for its rows, which real-time mode can't: use functions of pyspark.sql.functions"


def find_verdicts(settings: Settings) -> tuple[dict[str, str], str]:
    """Of the setting `query`: by mode why it can't run it, and why the places of records are not known of its rows.

    "" where the mode can, and where they are. With the line of the function, where one makes it so. A new Spark
    plans it, without Kafka.

    Raises:
        UsageError: there is no such query, or it makes no rows.
    """
    query, mode = load_user_query(settings), MODES["micro-batch"]
    spark = session.start(settings.model_copy(update={"spark_master": "local[1]"}), mode)
    try:
        records = sources.read(spark, mode, query.schema, settings)
        with _noting(query.file) as made:
            rows = query.rows(records, settings)
        refusals: dict[str, str] = {}
        for name, one in MODES.items():
            refusals[name] = refusal = find_refusal(rows, one)
            lines = (line for line, part in made if find_refusal(part, one) == refusal)
            if refusal and (line := next(lines, 0)):
                refusals[name] = f"{refusal} (line {line})"
        return refusals, query.plan(rows, records).without_places
    finally:
        spark.stop()


@contextmanager
def _noting(file: str) -> Iterator[list[tuple[int, DataFrame]]]:
    """The DataFrames that code of the file gets within it, each with its line: Spark's plan does not know them."""
    made: list[tuple[int, DataFrame]] = []

    def note(frame: FrameType, event: str, value: object) -> None:
        caller = frame.f_back
        if event == "return" and isinstance(value, DataFrame) and caller and caller.f_code.co_filename == file:
            made.append((caller.f_lineno, value))

    sys.setprofile(note)
    try:
        yield made
    finally:
        sys.setprofile(None)


def find_refusal(rows: DataFrame, mode: Mode) -> str:
    """Why the mode can't run it, in one sentence; "" where it can."""
    jvm: Any = rows.sparkSession._jvm
    plan, update = rows._jdf.queryExecution().analyzed(), jvm.org.apache.spark.sql.streaming.OutputMode.Update()
    try:
        check_plan(rows, mode)
        for check in _CHECKS.get(mode.name, ("checkForStreaming",)):
            getattr(invoke.java_class(jvm, _CHECKER), check)(plan, update)
    except UsageError as error:
        return str(error)
    except AnalysisException as error:
        return session.first_line(error).rstrip(";.")
    return _find_late_refusal(rows, mode)


def _find_late_refusal(rows: DataFrame, mode: Mode) -> str:
    """What Spark finds when it plans the first batch: its optimizer makes an aggregate of a lateral join, say."""
    spark: Any = rows.sparkSession
    jvm, state = spark._jvm, spark._jsparkSession.sessionState()
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)  # else: Spark's default rules
    nodes = list(plan_nodes(state.optimizer().execute(rows._jdf.queryExecution().analyzed())))
    if not mode.keeps_state and any(map(invoke.java_class(jvm, _CHECKER).isStatefulOperation, nodes)):
        return f"the query keeps state, which {mode.name} mode can't"
    if mode.name != "real-time":
        return ""
    if calls_python(rows):
        return _PYTHON
    of_records = [node for node in nodes if node.isStreaming()]
    joins = (node for node in of_records if str(node.getClass().getSimpleName()) == "Join")
    can_broadcast = invoke.java_class(jvm, _JOINS).canPlanAsBroadcastHashJoin
    if not all(can_broadcast(join, state.conf()) and "=merge" not in join.hint().toString() for join in joins):
        return _JOIN
    return _TWICE if sum(node.children().isEmpty() for node in of_records) > 1 else ""
