"""No decision twice: the query drops what the outputs hold, and ends where Spark would write something again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyroaring import BitMap64
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from fraud_filter import schema as layout
from fraud_filter.query import invoke
from fraud_filter.records import OFFSET_BITS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BITMAP = "org.roaringbitmap.longlong.Roaring64NavigableMap"
_CONTEXT = "org.apache.spark.TaskContext"


def write_once(decisions: DataFrame, written: BitMap64, writer: int, *, retries: bool) -> DataFrame:
    """The rows for the sink: those of `decisions` that are not `written`, with a header that names the `writer`.

    Args:
        decisions: as `decide` gives them.
        written: `decision_id` of payments whose decisions the outputs hold; each executor holds them once.
        writer: this writer's generation.
        retries: Spark may try a task again in this mode; where it does, the query fails instead.
    """
    is_new = ~_is_in(written)
    if retries:
        is_new = F.when(_attempt() > 0, F.raise_error(F.lit("a task is not tried again"))).otherwise(is_new)
    header = F.struct(F.lit(layout.HEADER_WRITER).alias("key"), F.lit(str(writer)).cast("binary").alias("value"))
    headers = F.concat("headers", F.array(header)).alias("headers")
    return decisions.where(is_new).select("key", "value", "topic", headers)


def _is_in(written: BitMap64) -> Column:
    jvm = invoke.active_jvm()
    ids = invoke.java_class(jvm, _BITMAP)()
    ids.deserializePortable(jvm.java.io.DataInputStream(jvm.java.io.ByteArrayInputStream(written.serialize())))
    place = F.shiftleft(F.col("_partition").cast("bigint"), OFFSET_BITS).bitwiseOR(F.col("_offset"))
    held = invoke.broadcast(jvm, ids, _BITMAP)
    found = invoke.call(jvm, held, "contains", invoke.data_type(jvm, "BOOLEAN"), invoke.expression(jvm, place))
    return invoke.column(jvm, found)


def _attempt() -> Column:
    """How often Spark has tried the task before."""
    jvm = invoke.active_jvm()
    context = invoke.static(jvm, _CONTEXT, "get", invoke.object_type(jvm, _CONTEXT))
    return invoke.column(jvm, invoke.call(jvm, context, "attemptNumber", invoke.data_type(jvm, "INT")))
