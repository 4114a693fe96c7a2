"""Where a record was read: its headers, and how they travel through a query that keeps one row for a record.

A function of the user's selects what it writes. The four columns of the record's place are added to each projection on
the way from the source to its result, where every operator on it gives at most one row for a record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from fraud_filter import schema as layout
from fraud_filter.query import invoke
from fraud_filter.query.invoke import each
from fraud_filter.query.preflight import operator_in_words, plan_nodes

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_COLUMNS = ("_topic", "_partition", "_offset", "_timestamp")
#: Spark's logical operators that give each row of their child once, or drop it, and need no other columns.
_ROW_BY_ROW = ("Filter", "SubqueryAlias", "EventTimeWatermark", "CollectMetrics", "ResolvedHint")
_FILTERING_JOINS = ("LeftSemi", "LeftAnti")
_JOINS = ("Inner", "LeftOuter", *_FILTERING_JOINS)
_PLANNING = "org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys"


class UnknownPlacesError(Exception):
    """The query does not keep one row for a record; says why."""


def header(key: str, text: Column) -> Column:
    """A Kafka header."""
    return F.struct(F.lit(key).alias("key"), text.cast("binary").alias("value"))


def place_headers(topic_id: str) -> list[Column]:
    """Kafka headers: where a record was read, its timestamp in milliseconds since 1970, and the id of the topic."""
    texts = {
        layout.HEADER_TOPIC: F.col("_topic"),
        layout.HEADER_PARTITION: F.col("_partition").cast("string"),
        layout.HEADER_OFFSET: F.col("_offset").cast("string"),
        layout.HEADER_TIMESTAMP: F.unix_millis("_timestamp").cast("string"),
    }
    if topic_id:
        texts[layout.HEADER_TOPIC_ID] = F.lit(topic_id)
    return [header(key, text) for key, text in texts.items()]


def carry(rows: DataFrame, records: DataFrame) -> DataFrame:
    """The `rows` that a function made of `records`, with the columns of the place of each row's record.

    Raises:
        UnknownPlacesError: there is no such record for each row, or a record may give several rows.
    """
    plan = records._jdf.queryExecution().analyzed()
    places = [column for column in each(plan.output()) if column.name() in _COLUMNS]
    ids = {place.exprId().id() for place in places}

    def carried(node: Any) -> Any:
        if ids <= {column.exprId().id() for column in each(node.output())}:
            return node
        kind = str(node.getClass().getSimpleName())
        if kind == "Project":
            project = invoke.java_class(invoke.active_jvm(), "org.apache.spark.sql.catalyst.plans.logical.Project")
            return project(_seq([*each(node.projectList()), *places]), carried(node.child()))
        if kind in _ROW_BY_ROW:
            return node.withNewChildren(_seq([carried(node.child())]))
        if kind == "Join":
            _require_one_match(node, rows)
            return node.withNewChildren(_seq([carried(node.left()), node.right()]))
        raise UnknownPlacesError(f"the query contains {operator_in_words(kind)}")

    return _frame(carried(rows._jdf.queryExecution().analyzed()), rows)


def _require_one_match(join: Any, like: DataFrame) -> None:
    how, table, jvm = str(join.joinType().toString()), join.right(), invoke.active_jvm()
    if how not in _JOINS or table.isStreaming():
        raise UnknownPlacesError("the query joins otherwise than its records, on the left side, with a table")
    if how in _FILTERING_JOINS:
        return
    keys = invoke.java_class(jvm, _PLANNING).unapply(join)
    if keys.isEmpty():
        raise UnknownPlacesError("the query joins a table by something else than equal columns")
    if str(table.getClass().getSimpleName()) == "ResolvedHint":  # Spark would warn of it where no join is
        table = table.child()
    columns = [invoke.column(jvm, key) for key in each(keys.get()._3())]
    rows = _frame(table, like).select(*columns)
    named = rows.toDF(*(f"key{at}" for at in range(len(columns)))).dropna()
    if not named.groupBy(*named.columns).count().where("count > 1").isEmpty():
        raise UnknownPlacesError("the query joins a table that has rows with the same key")


def read_from(records: DataFrame, rows: DataFrame) -> DataFrame:
    """The same `rows`, made of `records`: those of the same source with other options, such as where it begins."""
    [source] = (node for node in plan_nodes(records._jdf.queryExecution().analyzed()) if node.children().isEmpty())

    def moved(node: Any) -> Any:
        if not node.isStreaming():
            return node
        if str(node.getClass().getSimpleName()) == "StreamingRelationV2":
            return node.copy(
                source.source(), source.sourceName(), source.table(), source.extraOptions(), node.output(),
                source.catalog(), source.identifier(), source.v1Relation(), source.sourceIdentifyingName(),
            )  # fmt: skip
        return node.withNewChildren(_seq([moved(child) for child in each(node.children())]))

    return _frame(moved(rows._jdf.queryExecution().analyzed()), rows)


def _frame(plan: Any, like: DataFrame) -> DataFrame:
    from pyspark.sql.classic.dataframe import DataFrame

    session: Any = like.sparkSession
    dataset = invoke.java_class(session._jvm, "org.apache.spark.sql.classic.Dataset")
    return DataFrame(dataset.ofRows(session._jsparkSession, plan), session)


def _seq(values: list[Any]) -> Any:
    return invoke.java_class(invoke.active_jvm(), "PythonUtils").toSeq(values)
