"""Where a record was read: its headers, and how they travel through a query that keeps one row for a record.

A function of the user's selects what it writes. The four columns of the record's place are added to each projection on
the way from the source to its result, where every operator on it gives at most one row for a record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from fraud_filter import schema as layout
from fraud_filter.query import invoke
from fraud_filter.query.preflight import operator_in_words

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
    output = plan.output()
    places = [output.apply(at) for at in range(output.size()) if output.apply(at).name() in _COLUMNS]
    return _frame(_Carrier(rows, places).add_to(rows._jdf.queryExecution().analyzed()), rows)


def _frame(plan: Any, like: DataFrame) -> DataFrame:
    from pyspark.sql.classic.dataframe import DataFrame

    session: Any = like.sparkSession
    dataset = invoke.java_class(session._jvm, "org.apache.spark.sql.classic.Dataset")
    return DataFrame(dataset.ofRows(session._jsparkSession, plan), session)


class _Carrier:
    """Adds the attributes `places` of the source to the operators of a plan."""

    def __init__(self, rows: DataFrame, places: list[Any]) -> None:
        self._rows, self._places = rows, places
        self._jvm: Any = rows.sparkSession._jvm
        self._ids = {place.exprId().id() for place in places}

    def add_to(self, node: Any) -> Any:
        if self._ids <= {attribute.exprId().id() for attribute in _each(node.output())}:
            return node
        kind = str(node.getClass().getSimpleName())
        if kind == "Project":
            columns = [*_each(node.projectList()), *self._places]
            return invoke.java_class(self._jvm, "org.apache.spark.sql.catalyst.plans.logical.Project")(
                self._seq(columns), self.add_to(node.child())
            )
        if kind in _ROW_BY_ROW:
            return node.withNewChildren(self._seq([self.add_to(node.child())]))
        if kind == "Join":
            self._require_one_match(node)
            return node.withNewChildren(self._seq([self.add_to(node.left()), node.right()]))
        raise UnknownPlacesError(f"the query contains {operator_in_words(kind)}")

    def _require_one_match(self, join: Any) -> None:
        how, table = str(join.joinType().toString()), join.right()
        if how not in _JOINS or table.isStreaming():
            raise UnknownPlacesError("the query joins otherwise than its records, on the left side, with a table")
        if how in _FILTERING_JOINS:
            return
        keys = invoke.java_class(self._jvm, _PLANNING).unapply(join)
        if keys.isEmpty():
            raise UnknownPlacesError("the query joins a table by something else than equal columns")
        if str(table.getClass().getSimpleName()) == "ResolvedHint":  # Spark would warn of it where no join is
            table = table.child()
        columns = [invoke.column(self._jvm, key) for key in _each(keys.get()._3())]
        rows = _frame(table, self._rows).select(*columns)
        named = rows.toDF(*(f"key{at}" for at in range(len(columns)))).dropna()
        if not named.groupBy(*named.columns).count().where("count > 1").isEmpty():
            raise UnknownPlacesError("the query joins a table that has rows with the same key")

    def _seq(self, values: list[Any]) -> Any:
        return invoke.java_class(self._jvm, "PythonUtils").toSeq(values)


def _each(values: Any) -> Iterator[Any]:
    return (values.apply(at) for at in range(values.size()))
