"""No decision twice: the query drops what the outputs hold, and ends where Spark would write something again."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from pyroaring import BitMap64
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from fraud_filter import schema as layout
from fraud_filter.query import invoke
from fraud_filter.records import OFFSET_BITS
from fraud_filter.spark.internals import task_scheduler

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BITMAP = "org.roaringbitmap.longlong.Roaring64NavigableMap"
_CONTEXT = "org.apache.spark.TaskContext"
_SCHEDULER = "org.apache.spark.scheduler.TaskSchedulerImpl"


class Written:
    """The payments that are decided, as a part of a query's plan; it is filled after the query was built.

    The plan holds the bitmap itself, so that each task gets what it holds when the task's job begins.
    """

    def __init__(self, decided: BitMap64 | None = None, executors: Collection[str] = ()) -> None:
        """A bitmap of the active session's Java; `decided` as of `fill`, or nothing; `executors` as of `is_new`."""
        self._executors = executors
        self._jvm = invoke.active_jvm()
        self._ids = invoke.java_class(self._jvm, _BITMAP)()
        if decided is not None:
            self.fill(decided)

    def fill(self, decided: BitMap64) -> None:
        """`decided` are the payments by their `decision_id`; called before the query starts."""
        content = self._jvm.java.io.ByteArrayInputStream(decided.serialize())
        self._ids.deserializePortable(self._jvm.java.io.DataInputStream(content))

    def is_new(self) -> Column:
        """Whether a payment is not decided, by `_partition` and `_offset`.

        Throws in a task that is tried again, as it would write some decisions twice. In every mode but continuous
        Spark tries a task again that failed, was killed, or was lost with its executor. Where there is a shuffle, it
        runs a stage again whose input was lost with an executor, and counts the tries of its tasks from 0.

        Throws in a batch that Spark plans after one of the `executors` was lost: in real-time mode a task that is tried
        again when the time of its batch is over reads nothing and ends well, and the next batch would read again what
        the lost one has written. The optimizer puts in what the scheduler says.
        """
        jvm, place = self._jvm, F.shiftleft(F.col("_partition").cast("bigint"), OFFSET_BITS).bitwiseOR(F.col("_offset"))
        held, boolean = invoke.constant(jvm, self._ids, _BITMAP), invoke.data_type(jvm, "BOOLEAN")
        is_new = ~invoke.column(jvm, invoke.call(jvm, held, "contains", boolean, invoke.expression(jvm, place)))
        failed = F.raise_error(F.lit("a task is not tried again: what it has written is read first"))
        refused = _attempt("attemptNumber") + _attempt("stageAttemptNumber") > 0
        for name in self._executors:
            scheduler = invoke.constant(jvm, task_scheduler(SparkSession.active()), _SCHEDULER)
            executor = invoke.constant(jvm, name, "java.lang.String")
            refused |= ~invoke.column(jvm, invoke.call(jvm, scheduler, "isExecutorAlive", boolean, executor))
        return F.when(refused, failed).otherwise(is_new)


def signed(decisions: DataFrame, writer: int) -> DataFrame:
    """The same rows with a header that names the `writer`, by its generation."""
    header = F.struct(F.lit(layout.HEADER_WRITER).alias("key"), F.lit(str(writer)).cast("binary").alias("value"))
    headers = F.concat("headers", F.array(header)).alias("headers")
    return decisions.select("key", "value", "topic", headers)


def _attempt(number: str) -> Column:
    """How often Spark has tried the task before, or its stage, by the method of a task's context that tells it."""
    jvm = invoke.active_jvm()
    context = invoke.static(jvm, _CONTEXT, "get", invoke.object_type(jvm, _CONTEXT))
    return invoke.column(jvm, invoke.call(jvm, context, number, invoke.data_type(jvm, "INT")))
