"""Whether an id stands on a block list, as a column: a look into a hash set that each executor holds once.

Written as `IN (...)`, a list is part of the plan: with a million ids each micro-batch would plan and ship them again.
Here the plan holds the number of a broadcast variable, and the code that Spark generates calls `HashSet.contains`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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
    catalyst = jvm.org.apache.spark.sql.catalyst.expressions
    columns = jvm.org.apache.spark.sql.classic.ExpressionUtils
    listed = spark._jsc.broadcast(_hash_set(jvm, ids))

    def call(target: Any, method: str, result: Any, *arguments: Any) -> Any:
        nothing = jvm.PythonUtils.toSeq([])
        given = jvm.PythonUtils.toSeq(list(arguments))
        return catalyst.objects.Invoke(target, method, result, given, nothing, True, True, True)

    variable = catalyst.Literal(listed, _object_type(jvm, "org.apache.spark.broadcast.Broadcast"))
    held = call(variable, "value", _object_type(jvm, "java.util.HashSet"))
    text = columns.expression(column.cast("string")._jc)
    return _column(columns.column(call(held, "contains", _type(jvm, "BOOLEAN"), text)))


def _hash_set(jvm: Any, ids: Sequence[str]) -> Any:
    """The ids as Spark's own strings. They go to Java as one text: a call for each would take minutes."""
    separator = next(candidate for candidate in _SEPARATORS if not any(candidate in one for one in ids))
    strings = jvm.org.apache.spark.unsafe.types.UTF8String
    texts = strings.fromString(separator.join(ids)).split(strings.fromString(separator), -1)
    # asList() takes an array of objects, and py4j no other array for it.
    objects = jvm.org.apache.spark.sql.catalyst.util.GenericArrayData(texts).toObjectArray(_type(jvm, "STRING"))
    return jvm.java.util.HashSet(jvm.java.util.Arrays.asList(objects))


def _type(jvm: Any, ddl: str) -> Any:
    return jvm.org.apache.spark.sql.types.DataType.fromDDL(ddl)


def _object_type(jvm: Any, name: str) -> Any:
    return jvm.org.apache.spark.sql.types.ObjectType(jvm.java.lang.Class.forName(name))


def _column(java_column: Any) -> Column:
    from pyspark.sql.classic.column import Column

    return Column(java_column)
