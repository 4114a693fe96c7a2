"""What a field of each type takes of a JSON value, as expressions over Jackson's tree. `oracle/fields` is its equal.

They are made to be interpreted (`invoke.interpreted`): Spark plans each micro-batch again, and would write the code of
all of them each time.
"""

from __future__ import annotations

import itertools
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from fraud_filter import schema as layout
from fraud_filter.query import invoke
from fraud_filter.text.ddl import WHOLE, Kind

if TYPE_CHECKING:
    from pyspark.sql import Column

NODE = "com.fasterxml.jackson.databind.JsonNode"
_STRING = "java.lang.String"
_MOST = {"DOUBLE": 1.7976931348623157e308, "FLOAT": 3.4028234663852886e38}


class Values:
    """Reads values from nodes of a tree."""

    def __init__(self, jvm: Any, reader: Any, time_unit: str) -> None:
        """`reader` is the one that made the tree."""
        self._jvm, self._reader, self._unit = jvm, reader, time_unit
        self._ids = itertools.count()

    def ask(self, node: Column, method: str, ddl: str) -> Column:
        """What a method of the node without arguments returns, a value of a type; null for no node."""
        target = invoke.expression(self._jvm, node)
        return invoke.column(self._jvm, invoke.call(self._jvm, target, method, invoke.data_type(self._jvm, ddl)))

    def get(self, node: Column, name: str) -> Column:
        """The member of this name; null where there is none."""
        return self._named(node, "get", name, invoke.object_type(self._jvm, NODE))

    def has(self, node: Column, name: str) -> Column:
        """Whether there is a member of this name that is not null; null for no node."""
        return self._named(node, "hasNonNull", name, invoke.data_type(self._jvm, "BOOLEAN"))

    def read(self, node: Column, kind: Kind) -> Column:
        """The value of a type; null where there is no node, where it is null, or does not fit."""
        if kind.name == "STRUCT":
            return self._struct(node, kind)
        if kind.name in ("ARRAY", "MAP"):
            return self._elements(node, kind)
        if kind.name == "STRING":
            return self._text(node)
        if kind.name == "BOOLEAN":
            return F.when(self.ask(node, "isBoolean", "BOOLEAN"), self.ask(node, "booleanValue", "BOOLEAN"))
        if kind.name == "DECIMAL":
            return self._decimal(node, kind)
        if kind.name in _MOST:
            return self._float(node, kind.name)
        return self._whole(node, kind.name) if kind.name in WHOLE else self._time(node, kind.name)

    def _text(self, node: Column) -> Column:
        return self._java_text(node, "textValue")  # null for what is none

    def _whole(self, node: Column, name: str) -> Column:
        fits, read, kind = ("canConvertToInt", "intValue", "INT")
        if name == "BIGINT":
            fits, read, kind = ("canConvertToLong", "longValue", "BIGINT")
        is_fit = self.ask(node, "isIntegralNumber", "BOOLEAN") & self.ask(node, fits, "BOOLEAN")
        number = F.when(is_fit, self.ask(node, read, kind))
        limit = 2 ** (WHOLE[name] - 1)
        return number if name == kind else F.when(number.between(-limit, limit - 1), number.cast(name))

    def _float(self, node: Column, name: str) -> Column:
        number = self.ask(node, "doubleValue", "DOUBLE").cast(name)
        fits = self.ask(node, "isNumber", "BOOLEAN") & (F.abs(number) <= F.lit(_MOST[name]).cast(name))
        return F.when(fits, number + F.lit(0.0).cast(name))  # -0.0 becomes 0.0

    def _decimal(self, node: Column, kind: Kind) -> Column:
        """Of a number, or of a text that is a plain one."""
        number = F.when(self.ask(node, "isNumber", "BOOLEAN"), self._java_text(node, "asText"))
        text = F.coalesce(_like(number, layout.DECIMAL_NUMBER), _like(self._text(node), layout.DECIMAL_TEXT))
        return text.cast(str(kind))

    def _time(self, node: Column, name: str) -> Column:
        time = _like(self._text(node), layout.FORMS[name]).cast(name)
        if name != "TIMESTAMP" or not self._unit:
            return time
        number = self._whole(node, "BIGINT")
        unit_us = layout.UNITS_US[self._unit]
        first, last = (limit // unit_us for limit in (layout.FIRST_TIME_US, layout.LAST_TIME_US))
        micros = F.when(number.between(first, last), number * F.lit(unit_us))
        return F.coalesce(time, F.timestamp_micros(micros))

    def _struct(self, node: Column, kind: Kind) -> Column:
        """Null where one of its fields does not fit."""
        fields = [(name, self.read(self.get(node, name), part)) for name, part in kind.parts]
        fit = reduce(
            lambda one, other: one & other,
            (value.isNotNull() | ~self.has(node, name) for name, value in fields),
            self.ask(node, "isObject", "BOOLEAN"),
        )
        return F.when(fit, F.struct(*(value.alias(name) for name, value in fields)))

    def _elements(self, node: Column, kind: Kind) -> Column:
        """Of an array, or an object as a map; null where one of the elements is null or does not fit."""
        jvm = self._jvm
        objects = jvm.org.apache.spark.sql.catalyst.expressions.objects
        types = jvm.com.fasterxml.jackson.databind.type.TypeFactory.defaultInstance()
        classes = jvm.java.lang.Class
        element = objects.LambdaVariable("element", invoke.object_type(jvm, NODE), True, next(self._ids))
        read = self.read(invoke.column(jvm, element), kind.parts[0][1])
        value = objects.AssertNotNull(invoke.expression(jvm, read), jvm.PythonUtils.toSeq([]))
        if kind.name == "ARRAY":
            java_type = types.constructCollectionType(classes.forName("java.util.ArrayList"), classes.forName(NODE))
            held = self._convert(node, java_type, "java.util.List")
            made = objects.MapObjects(element, value, held, jvm.scala.Option.empty())
        else:
            kinds = (classes.forName(name) for name in ("java.util.LinkedHashMap", _STRING, NODE))
            held = self._convert(node, types.constructMapType(*kinds), "java.util.Map")
            key = objects.LambdaVariable("key", invoke.object_type(jvm, _STRING), False, next(self._ids))
            made = objects.ExternalMapToCatalyst(key, invoke.text(jvm, key), element, value, held)
        fits = self.ask(node, "isArray" if kind.name == "ARRAY" else "isObject", "BOOLEAN")
        return F.when(fits, invoke.try_eval(jvm, invoke.column(jvm, made)))

    def _convert(self, node: Column, java_type: Any, result: str) -> Any:
        """The node as a Java collection, as an expression."""
        jvm = self._jvm
        reader = invoke.constant(jvm, self._reader.forType(java_type), "com.fasterxml.jackson.databind.ObjectReader")
        target = invoke.expression(jvm, node)
        return invoke.call(jvm, reader, "readValue", invoke.object_type(jvm, result), target)

    def _java_text(self, node: Column, method: str) -> Column:
        jvm = self._jvm
        text = invoke.call(jvm, invoke.expression(jvm, node), method, invoke.object_type(jvm, _STRING))
        return invoke.column(jvm, invoke.text(jvm, text))

    def _named(self, node: Column, method: str, name: str, result: Any) -> Column:
        jvm = self._jvm
        return invoke.column(
            jvm, invoke.call(jvm, invoke.expression(jvm, node), method, result, invoke.constant(jvm, name, _STRING))
        )


def _like(text: Column, form: str) -> Column:
    """The text where it has this form, otherwise one that is no value of any type that is cast to."""
    return F.regexp_extract(text, rf"^(?:{form})\z", 0)
