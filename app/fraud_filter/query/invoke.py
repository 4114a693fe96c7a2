"""A call of a Java method as a column: where Spark has no expression that its generated code could hold.

Spark does the same for its own functions (`StructsToJson`, which is `to_json`, becomes an `Invoke`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
#: Names and types of this many are held: each part of a name that is looked up is a question to Java.
_HELD = 256


def active_jvm() -> Any:
    """The Java of the session."""
    from pyspark.sql import SparkSession

    return SparkSession.active()._jvm


def each(sequence: Any) -> Iterator[Any]:
    """The members of a Scala sequence."""
    return (sequence.apply(at) for at in range(sequence.size()))


@functools.lru_cache(_HELD)
def java_class(jvm: Any, name: str) -> Any:
    """What makes objects of the class, or has its static methods."""
    return functools.reduce(getattr, name.split("."), jvm)


def constant(jvm: Any, value: Any, name: str) -> Any:
    """The Java object `value` of the class `name` as an expression; tasks get it serialised, with their code."""
    return java_class(jvm, f"{_EXPRESSIONS}.Literal")(value, object_type(jvm, name))


def broadcast(jvm: Any, value: Any, name: str) -> Any:
    """The Java object `value` of the class `name` as an expression; each executor holds it once.

    (Spark guide, "Broadcast Variables")
    """
    from pyspark.sql import SparkSession

    held = constant(jvm, SparkSession.active()._jsc.broadcast(value), "org.apache.spark.broadcast.Broadcast")
    return call(jvm, held, "value", object_type(jvm, name))


def static(jvm: Any, name: str, method: str, result: Any, *arguments: Any) -> Any:
    """The call of a static `method` of the class `name` as an expression, as `call`."""
    seq = java_class(jvm, "PythonUtils").toSeq
    expression = java_class(jvm, f"{_EXPRESSIONS}.objects.StaticInvoke")
    owner, none = java_class(jvm, "java.lang.Class").forName(name), java_class(jvm, "scala.Option").empty()
    return expression(owner, result, method, seq(list(arguments)), seq([]), True, True, True, none)


def call(jvm: Any, target: Any, method: str, result: Any, *arguments: Any) -> Any:
    """The call of `method` on the expression `target` as an expression; null where an argument is.

    Args:
        result: Spark's data type of what it returns.
        arguments: expressions.
    """
    seq = java_class(jvm, "PythonUtils").toSeq
    invoke = java_class(jvm, f"{_EXPRESSIONS}.objects.Invoke")
    return invoke(target, method, result, seq(list(arguments)), seq([]), True, True, True)


def text(jvm: Any, java_text: Any) -> Any:
    """The expression `java_text`, a `java.lang.String`, as an expression of type STRING."""
    return static(jvm, "org.apache.spark.unsafe.types.UTF8String", "fromString", data_type(jvm, "STRING"), java_text)


@functools.lru_cache(_HELD)
def data_type(jvm: Any, ddl: str) -> Any:
    """Spark's data type of a DDL text that names one type."""
    return jvm.org.apache.spark.sql.types.DataType.fromDDL(ddl)


def struct_type(jvm: Any, ddl: str) -> Any:
    """Spark's data type of a struct, whose DDL text is a list of columns."""
    return jvm.org.apache.spark.sql.types.StructType.fromDDL(ddl)


@functools.lru_cache(_HELD)
def object_type(jvm: Any, name: str) -> Any:
    """Spark's data type of a Java object of the class `name`."""
    return jvm.org.apache.spark.sql.types.ObjectType(jvm.java.lang.Class.forName(name))


def expression(jvm: Any, column: Column) -> Any:
    """The expression of a column."""
    return java_class(jvm, "org.apache.spark.sql.classic.ExpressionUtils").expression(column._jc)


def try_eval(jvm: Any, throwing: Column) -> Column:
    """The column, null where evaluating it throws."""
    return column(jvm, jvm.org.apache.spark.sql.catalyst.expressions.TryEval(expression(jvm, throwing)))


def column(jvm: Any, java_expression: Any) -> Column:
    """The column of an expression."""
    from pyspark.sql.classic.column import Column

    return Column(java_class(jvm, "org.apache.spark.sql.classic.ExpressionUtils").column(java_expression))


def interpreted(inputs: Sequence[tuple[Column, Any]], result: Any, make: Callable[..., Column]) -> Column:
    """What `make` gives of columns, as one call in the plan: tasks evaluate it expression by expression.

    Spark plans each micro-batch again and writes the code of all its expressions; what is behind this call it neither
    plans nor writes. `nullif` can't be: only the optimizer makes it something that can be evaluated.

    Args:
        inputs: the columns that `make` gets, each with its data type.
        result: the data type of what it gives.
    """
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    spark = SparkSession.active()
    jvm: Any = spark._jvm
    catalyst = jvm.org.apache.spark.sql.catalyst
    bound = (catalyst.expressions.BoundReference(at, kind, True) for at, (_, kind) in enumerate(inputs))
    made = make(*(column(jvm, one) for one in bound))
    analysed = spark.range(1).select(made.alias("made"))._jdf.queryExecution().analyzed()
    # What the optimizer must do before an expression can be evaluated.
    ready = catalyst.optimizer.ReplaceExpressions.apply(analysed).expressions().head().child()
    held = constant(jvm, ready, "org.apache.spark.sql.catalyst.expressions.Expression")
    row = expression(jvm, F.struct(*(one for one, _ in inputs)))
    return column(jvm, call(jvm, held, "eval", result, row))
