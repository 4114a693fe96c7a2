"""A record's JSON as columns: one object, read strictly, and each field by its type in payment.ddl.

Jackson, by which Spark reads JSON, makes a tree of the text; what a field takes of it is told by the table in
docs/rules.md. Spark's own `from_json` gives a STRING any value as text, wraps large numbers, and gives a time
without a date the day on which it is read; no option of it refuses these.

What a field of each type takes of a JSON value are expressions over Jackson's tree; `oracle/fields` is their equal.
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
from fraud_filter.schema import PaymentSchema
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


#: What Jackson takes for white space.
_BLANK = r"^[ \t\r\n]*+\z"

#: A name that follows itself in a sorted list of names, each behind ": ", with NUL between them.
_REPEATED = r"(?:^|\x00)(: [^\x00]*+)\x00\1(?:\x00|$)"

_LONGEST_NAME = 100


class JsonRecord:
    """Reads the records of one schema."""

    def __init__(self, schema: PaymentSchema) -> None:
        self._jvm = invoke.active_jvm()
        self._schema = schema
        self._first = _reader(self._jvm, schema.has_decimals)
        features = self._jvm.com.fasterxml.jackson
        self._only = _with(self._first, features.databind.DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
        self._unique = _with(self._only, features.core.JsonParser.Feature.STRICT_DUPLICATE_DETECTION)
        self._values = Values(self._jvm, self._first, schema.time_unit)
        self._payment = invoke.struct_type(self._jvm, schema.ddl)
        self._type = invoke.struct_type(self._jvm, f"payment STRUCT<{schema.ddl}>, is_whole BOOLEAN")

    def read(self, text: Column) -> Column:
        """A struct of `payment`, the schema's fields, and `is_whole`, whether it can be judged.

        `payment` is null where the text is no JSON object that the filter takes, and a field where the object has none
        of this name, or one that does not fit. Whole has all required fields, and none that does not fit.
        """
        node = invoke.object_type(self._jvm, NODE)

        def read(tree: Column) -> Column:
            payment = invoke.interpreted([(tree, node)], self._payment, self._fields)
            return invoke.interpreted([(tree, node), (payment, self._payment)], self._type, self._judged)

        return invoke.interpreted([(self._tree(self._unique, self._fitting(text)), node)], self._type, read)

    def flaw(self, value: Column, text: Column, payment: Column) -> Column:
        """Why a record can't be judged, as a reject reason: of its bytes, its text, and the payment that was read."""
        binary, string = (invoke.data_type(self._jvm, name) for name in ("BINARY", "STRING"))
        inputs = [(value, binary), (text, string), (payment, self._payment)]

        def flaw(value: Column, text: Column, payment: Column) -> Column:
            fitting = (self._fitting(text), invoke.object_type(self._jvm, _STRING))
            given = [fitting, (value, binary), (text, string), (payment, self._payment)]
            return invoke.interpreted(given, string, self._flaw)

        return invoke.interpreted(inputs, string, flaw)

    def _fields(self, tree: Column) -> Column:
        values = self._values
        fields = (values.read(values.get(tree, one.name), one.kind).alias(one.name) for one in self._schema.fields)
        return F.when(values.ask(tree, "isObject", "BOOLEAN"), F.struct(*fields))

    def _judged(self, tree: Column, payment: Column) -> Column:
        required = (payment[name].isNotNull() for name in self._schema.required)
        others = (
            payment[field.name].isNotNull() | ~self._values.has(tree, field.name)
            for field in self._schema.fields
            if not field.required
        )
        is_whole = reduce(lambda one, other: one & other, (*required, *others), payment.isNotNull())
        return F.struct(payment.alias("payment"), is_whole.alias("is_whole"))

    def _flaw(self, java_text: Column, value: Column, text: Column, payment: Column) -> Column:
        first, only, tree = (self._tree(reader, java_text) for reader in (self._first, self._only, self._unique))
        is_object = F.coalesce(self._values.ask(first, "isObject", "BOOLEAN"), F.lit(False))
        inputs = [(tree, invoke.object_type(self._jvm, NODE)), (payment, self._payment)]
        of_fields = invoke.interpreted(inputs, invoke.data_type(self._jvm, "STRING"), self._flaw_of_fields)
        return (
            F.when(value.isNotNull() & text.isNull(), F.lit(layout.REASON_NO_SCHEMA_ID))
            .when(value.isNull() | text.rlike(_BLANK), F.lit(layout.REASON_EMPTY))
            .when(~is_object, F.lit(layout.REASON_MALFORMED))
            .when(only.isNull(), F.lit(layout.REASON_TRAILING))
            .when(tree.isNull(), F.concat(F.lit(layout.REASON_DUPLICATE), _repeated_name(text)))
            .otherwise(of_fields)
        )

    def _flaw_of_fields(self, tree: Column, payment: Column) -> Column:
        wrong = (
            F.when(payment[field.name].isNull() & self._values.has(tree, field.name), F.lit(field.name))
            for field in self._schema.fields
        )
        missing = (F.when(payment[name].isNull(), F.lit(name)) for name in self._schema.required)
        wrong_names = F.concat_ws(",", *wrong)
        return F.when(wrong_names != "", F.concat(F.lit(f"{layout.REASON_WRONG_TYPE}: "), wrong_names)).otherwise(
            F.concat(F.lit(f"{layout.REASON_MISSING}: "), F.concat_ws(",", *missing))
        )

    def _tree(self, reader: Any, java_text: Column) -> Column:
        """The tree of a text; null where it is refused, is no JSON, or is null. Blank text has a tree, too."""
        jvm = self._jvm
        held = invoke.constant(jvm, reader, "com.fasterxml.jackson.databind.ObjectReader")
        node = invoke.object_type(jvm, NODE)
        read = invoke.call(jvm, held, "readTree", node, invoke.expression(jvm, java_text))
        return invoke.try_eval(jvm, invoke.column(jvm, read))

    def _fitting(self, text: Column) -> Column:
        """The text as Java's; null where it is no UTF-8, or has a number that may be too long to be read alike."""
        jvm = self._jvm
        string = invoke.object_type(jvm, _STRING)
        java_text = invoke.call(jvm, invoke.expression(jvm, text), "toString", string)
        # Java puts this character for what is none; to look for it is ten times faster than to look at each byte.
        broken = invoke.constant(jvm, "\ufffd", _STRING)
        at = invoke.column(jvm, invoke.call(jvm, java_text, "indexOf", invoke.data_type(jvm, "INT"), broken))
        is_long = F.length(text) >= layout.LONGEST_NUMBER
        fits = ((at < 0) | F.is_valid_utf8(text)) & ~(is_long & text.rlike(layout.NUMBER_RUN))
        return F.when(fits, invoke.column(jvm, java_text))


def _reader(jvm: Any, exact: bool) -> Any:
    """A reader of trees; `exact` keeps all digits of numbers with a fraction or an exponent."""
    core, databind = jvm.com.fasterxml.jackson.core, jvm.com.fasterxml.jackson.databind
    most = jvm.java.lang.Integer.MAX_VALUE
    limits = core.StreamReadConstraints.builder().maxNestingDepth(layout.MOST_LEVELS).maxNameLength(most)
    builder = core.JsonFactory.builder().streamReadConstraints(limits.maxStringLength(most).build())
    factory = builder.build()
    # A table of names that recur costs 40 ms where a record has 80,000 that do not.
    factory.disable(core.JsonFactory.Feature.CANONICALIZE_FIELD_NAMES)
    reader = databind.ObjectMapper(factory).reader()
    if not exact:
        return reader
    kept = databind.node.JsonNodeFactory.withExactBigDecimals(True)
    return _with(_with(reader, databind.DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS), kept)


def _with(reader: Any, feature: Any) -> Any:
    return getattr(reader, "with")(feature)


def _repeated_name(text: Column) -> Column:
    """Of the object itself; empty for names that repeat in an object within it."""
    sorted_names = F.sort_array(F.json_object_keys(text))
    names = F.concat(F.lit(": "), F.array_join(sorted_names, "\0: "))
    name = F.regexp_extract(names, _REPEATED, 1).substr(1, len(": ") + _LONGEST_NAME)
    return F.coalesce(F.regexp_replace(name, r"\p{Cntrl}", "?"), F.lit(""))
