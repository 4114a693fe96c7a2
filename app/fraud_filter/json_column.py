"""JSON text as a struct column, by the parser of Spark's `from_json`, as a part of the code that Spark generates.

`from_json` itself is none (`CodegenFallback`): the operators around it then are none either, and continuous mode
generates the code of their projections anew for each epoch of each task while records wait (docs/modes.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fraud_filter import invoke

if TYPE_CHECKING:
    from pyspark.sql import Column

_PARSER = "org.apache.spark.sql.catalyst.expressions.json.JsonToStructsEvaluator"


def parse_json(text: Column, ddl: str, corrupt: str) -> Column:
    """What `from_json(text, ddl)` gives in its mode PERMISSIVE, with times in UTC; null where the text is.

    Args:
        ddl: the struct's columns, all nullable.
        corrupt: the column that gets the text where it does not fit, null otherwise; it need not be in `ddl`.
    """
    from pyspark.sql import SparkSession

    jvm: Any = SparkSession.active()._jvm
    struct = invoke.data_type(jvm, ddl)
    no_options = jvm.PythonUtils.toScalaMap({})
    parsers = jvm.org.apache.spark.sql.catalyst.expressions.json
    parser = parsers.JsonToStructsEvaluator(no_options, struct, corrupt, jvm.scala.Option.apply("UTC"), False)
    target = invoke.constant(jvm, parser, _PARSER)
    return invoke.column(jvm, invoke.call(jvm, target, "evaluate", struct, invoke.expression(jvm, text)))
