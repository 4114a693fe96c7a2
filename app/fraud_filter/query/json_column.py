"""JSON text as columns, by Spark's parser and by Jackson's, as parts of the code that Spark generates.

`from_json` itself is none (`CodegenFallback`): the operators around it then are none either, and continuous mode
generates the code of their projections again for each epoch of each task while records wait (docs/modes.md).
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from fraud_filter.query import invoke

if TYPE_CHECKING:
    from pyspark.sql import Column

_PARSER = "org.apache.spark.sql.catalyst.expressions.json.JsonToStructsEvaluator"
_JACKSON = "com.fasterxml.jackson"
_READER = f"{_JACKSON}.databind.ObjectReader"
_NODE = f"{_JACKSON}.databind.JsonNode"
_STRING = "java.lang.String"


def parse_json(text: Column, ddl: str, corrupt: str) -> Column:
    """What `from_json(text, ddl)` gives in its mode PERMISSIVE, with times in UTC; null where the text is.

    It reads the text's first value and nothing behind it; of equal names the last one counts.

    Args:
        ddl: the struct's columns, all nullable.
        corrupt: the column that gets the text where it does not fit, null otherwise; it need not be in `ddl`.
    """
    jvm = _jvm()
    struct = invoke.struct_type(jvm, ddl)
    no_options = jvm.PythonUtils.toScalaMap({})
    parsers = jvm.org.apache.spark.sql.catalyst.expressions.json
    parser = parsers.JsonToStructsEvaluator(no_options, struct, corrupt, jvm.scala.Option.apply("UTC"), False)
    target = invoke.constant(jvm, parser, _PARSER)
    return invoke.column(jvm, invoke.call(jvm, target, "evaluate", struct, invoke.expression(jvm, text)))


class JsonReader:
    """Reads JSON texts whole with Jackson, with the settings of Spark's parser.

    Its columns are Java objects, or null for a text that is refused: they can be parts of a projection's expressions,
    not its results. Readers derived from one share most of what a task is sent.
    """

    def __init__(self) -> None:
        jvm = _jvm()
        options = jvm.org.apache.spark.sql.catalyst.json.JSONOptions
        factory = options(jvm.PythonUtils.toScalaMap({}), "UTC", "").buildJsonFactory()
        # A table of names that recur costs 40 ms where a record has 80,000 that do not.
        factory.disable(jvm.com.fasterxml.jackson.core.JsonFactory.Feature.CANONICALIZE_FIELD_NAMES)
        self._reader = jvm.com.fasterxml.jackson.databind.ObjectMapper(factory).reader()

    def one_value(self) -> JsonReader:
        """Refuses a text in which anything follows the first value."""
        return self._with(_jvm().com.fasterxml.jackson.databind.DeserializationFeature.FAIL_ON_TRAILING_TOKENS)

    def unique_names(self) -> JsonReader:
        """Refuses a text in which an object, at any depth, has a name twice."""
        return self._with(_jvm().com.fasterxml.jackson.core.JsonParser.Feature.STRICT_DUPLICATE_DETECTION)

    def all_digits(self) -> JsonReader:
        """Reads all digits of numbers with a fraction or an exponent; refuses an exponent beyond 32 bits."""
        databind = _jvm().com.fasterxml.jackson.databind
        kept = databind.node.JsonNodeFactory.withExactBigDecimals(True)
        return self._with(databind.DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)._with(kept)

    def members(self, text: Column) -> Column:
        """The names of an object's members; null where the text is refused, no object, or null.

        The values are skipped, where a tree would hold each of them.
        """
        jvm = _jvm()
        classes = jvm.java.lang.Class
        types = jvm.com.fasterxml.jackson.databind.type.TypeFactory.defaultInstance()
        kinds = (classes.forName(name) for name in ("java.util.HashMap", _STRING, "java.lang.Void"))
        return self._of_type(types.constructMapType(*kinds))._read(text, "readValue", "java.lang.Object")

    def tree(self, text: Column) -> Column:
        """The tree of a text; null where it is refused, is no JSON, or is null. Blank text has a tree, too."""
        return self._read(text, "readTree", _NODE)

    def _read(self, text: Column, method: str, result: str) -> Column:
        jvm = _jvm()
        java_text = invoke.call(jvm, invoke.expression(jvm, text), "toString", invoke.object_type(jvm, _STRING))
        reader = invoke.constant(jvm, self._reader, _READER)
        read = invoke.call(jvm, reader, method, invoke.object_type(jvm, result), java_text)
        return invoke.try_eval(jvm, invoke.column(jvm, read))

    def _of_type(self, kind: Any) -> JsonReader:
        changed = copy.copy(self)
        changed._reader = self._reader.forType(kind)
        return changed

    def _with(self, feature: Any) -> JsonReader:
        changed = copy.copy(self)
        changed._reader = getattr(self._reader, "with")(feature)
        return changed


def member_text(tree: Column, name: str) -> Column:
    """The text of a text, number, boolean or null in a tree's root object; empty for what is none; null for no tree.

    A number is written as Java's BigDecimal does, with an exponent where it would be long.
    """
    jvm = _jvm()
    java_name = invoke.constant(jvm, name, _STRING)
    node = invoke.call(jvm, invoke.expression(jvm, tree), "path", invoke.object_type(jvm, _NODE), java_name)
    text = invoke.call(jvm, node, "asText", invoke.object_type(jvm, _STRING))
    return invoke.column(jvm, invoke.text(jvm, text))


def _jvm() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.active()._jvm
