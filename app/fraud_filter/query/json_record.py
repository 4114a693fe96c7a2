"""A record's JSON as columns: one object, read strictly, and each field by its type in payment.ddl.

Jackson, by which Spark reads JSON, makes a tree of the text; what a field takes of it is told by the table in
docs/your-stream.md. Spark's own `from_json` gives a STRING any value as text, wraps large numbers, and gives a time
without a date the day on which it is read; no option of it refuses these.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from fraud_filter import schema as layout
from fraud_filter.query import invoke
from fraud_filter.query.json_value import NODE, Values
from fraud_filter.schema import PaymentSchema

if TYPE_CHECKING:
    from pyspark.sql import Column

#: Field of what `read` gives: how many of the schema's fields the object has, nulls not counted.
_GIVEN = "_given"
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
        exact = any("DECIMAL(" in field.type for field in schema.fields)
        self._first = _reader(self._jvm, exact)
        features = self._jvm.com.fasterxml.jackson
        self._only = _with(self._first, features.databind.DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
        self._unique = _with(self._only, features.core.JsonParser.Feature.STRICT_DUPLICATE_DETECTION)
        self._values = Values(self._jvm, self._first, schema.time_unit)
        given = f"`{_GIVEN}` INT"
        self._type = invoke.struct_type(self._jvm, ", ".join((*([schema.ddl] if schema.fields else []), given)))

    def read(self, text: Column) -> Column:
        """A struct of the schema's fields; null where the text is no JSON object that the filter takes.

        A field is null where the object has none of this name, or one that does not fit.
        """
        node = invoke.object_type(self._jvm, NODE)
        return invoke.interpreted(
            [(self._tree(self._unique, F.when(_fits(text), text)), node)], self._type, self._fields
        )

    def is_whole(self, payment: Column) -> Column:
        """Whether what `read` gave has all required fields, and none that does not fit."""

        def is_whole(given: Column) -> Column:
            required = (given[name].isNotNull() for name in self._schema.required)
            there = reduce(add, (given[field.name].isNotNull().cast("int") for field in self._schema.fields))
            return reduce(lambda one, other: one & other, required, given[_GIVEN] == there)

        whole = invoke.interpreted([(payment, self._type)], invoke.data_type(self._jvm, "BOOLEAN"), is_whole)
        return payment.isNotNull() & whole

    def flaw(self, value: Column, text: Column, payment: Column) -> Column:
        """Why a record can't be judged, as a reject reason: of its bytes, its text, and what `read` gave."""
        types = [invoke.data_type(self._jvm, "BINARY"), invoke.data_type(self._jvm, "STRING"), self._type]
        inputs = list(zip((value, text, payment), types, strict=True))
        return invoke.interpreted(inputs, types[1], self._flaw)

    def _fields(self, tree: Column) -> Column:
        names = [field.name for field in self._schema.fields]
        is_object = self._values.ask(tree, "isObject", "BOOLEAN")
        values = [self._values.read(self._values.get(tree, field.name), field.kind) for field in self._schema.fields]
        given = reduce(add, (self._values.has(tree, name).cast("int") for name in names))
        fields = (value.alias(name) for name, value in zip(names, values, strict=True))
        return F.when(is_object, F.struct(*fields, given.alias(_GIVEN)))

    def _flaw(self, value: Column, text: Column, payment: Column) -> Column:
        first, only, tree = (self._tree(reader, text) for reader in (self._first, self._only, self._unique))
        is_object = F.coalesce(self._values.ask(first, "isObject", "BOOLEAN"), F.lit(False))
        wrong = (
            F.when(self._values.has(tree, field.name) & payment[field.name].isNull(), F.lit(field.name))
            for field in self._schema.fields
        )
        missing = (F.when(payment[name].isNull(), F.lit(name)) for name in self._schema.required)
        wrong_names, missing_names = F.concat_ws(",", *wrong), F.concat_ws(",", *missing)
        return (
            F.when(value.isNotNull() & text.isNull(), F.lit(layout.REASON_NO_SCHEMA_ID))
            .when(value.isNull() | text.rlike(_BLANK), F.lit(layout.REASON_EMPTY))
            .when(~_fits(text) | ~is_object, F.lit(layout.REASON_MALFORMED))
            .when(only.isNull(), F.lit(layout.REASON_TRAILING))
            .when(tree.isNull(), F.concat(F.lit(layout.REASON_DUPLICATE), _repeated_name(text)))
            .when(wrong_names != "", F.concat(F.lit(f"{layout.REASON_WRONG_TYPE}: "), wrong_names))
            .otherwise(F.concat(F.lit(f"{layout.REASON_MISSING}: "), missing_names))
        )

    def _tree(self, reader: Any, text: Column) -> Column:
        """The tree of a text; null where it is refused, is no JSON, or is null. Blank text has a tree, too."""
        jvm = self._jvm
        java_text = invoke.call(
            jvm, invoke.expression(jvm, text), "toString", invoke.object_type(jvm, "java.lang.String")
        )
        held = invoke.constant(jvm, reader, "com.fasterxml.jackson.databind.ObjectReader")
        return invoke.try_eval(
            jvm, invoke.column(jvm, invoke.call(jvm, held, "readTree", invoke.object_type(jvm, NODE), java_text))
        )


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


def _fits(text: Column) -> Column:
    """Whether the text is UTF-8, without a number that may be too long to be read alike everywhere."""
    is_long = F.length(text) >= layout.LONGEST_NUMBER
    return F.is_valid_utf8(text) & ~(is_long & text.rlike(layout.NUMBER_RUN))


def _repeated_name(text: Column) -> Column:
    """Of the object itself; empty for names that repeat in an object within it."""
    sorted_names = F.sort_array(F.json_object_keys(text))
    names = F.concat(F.lit(": "), F.array_join(sorted_names, "\0: "))
    name = F.regexp_extract(names, _REPEATED, 1).substr(1, len(": ") + _LONGEST_NAME)
    return F.coalesce(F.regexp_replace(name, r"\p{Cntrl}", "?"), F.lit(""))
