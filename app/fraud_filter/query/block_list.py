"""Whether an id stands on a block list, as a column: a look into a hash set that each executor holds once.

Written as `IN (...)`, a list is part of the plan: with a million ids each micro-batch would plan and ship them again.
Here the plan holds the number of a broadcast variable, and the code that Spark generates calls `HashSet.contains`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fraud_filter.query import invoke

if TYPE_CHECKING:
    from pyspark.sql import Column

#: Unicode's private use area: of these characters some is in no id.
_SEPARATORS = "".join(map(chr, range(0xE000, 0xF900)))


def is_blocked(column: Column, ids: Sequence[str]) -> Column:
    """A boolean column: is the text of `column` one of the `ids`? Null where the text is.

    The active Spark session broadcasts the ids, some 100 bytes each in the driver and in each executor (Spark guide,
    "Broadcast Variables").
    """
    from pyspark.sql import SparkSession

    spark = SparkSession.active()
    jvm: Any = spark._jvm
    listed = invoke.constant(jvm, spark._jsc.broadcast(_hash_set(jvm, ids)), "org.apache.spark.broadcast.Broadcast")
    held = invoke.call(jvm, listed, "value", invoke.object_type(jvm, "java.util.HashSet"))
    text = invoke.expression(jvm, column.cast("string"))
    return invoke.column(jvm, invoke.call(jvm, held, "contains", invoke.data_type(jvm, "BOOLEAN"), text))


def _hash_set(jvm: Any, ids: Sequence[str]) -> Any:
    """The ids as Spark's own strings. They go to Java as one text: a call for each would take minutes."""
    separator = next(candidate for candidate in _SEPARATORS if not any(candidate in one for one in ids))
    strings = jvm.org.apache.spark.unsafe.types.UTF8String
    texts = strings.fromString(separator.join(ids)).split(strings.fromString(separator), -1)
    # asList() takes an array of objects, and py4j no other array for it.
    array = jvm.org.apache.spark.sql.catalyst.util.GenericArrayData(texts)
    objects = array.toObjectArray(invoke.data_type(jvm, "STRING"))
    return jvm.java.util.HashSet(jvm.java.util.Arrays.asList(objects))
