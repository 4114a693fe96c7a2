"""What must hold of a record's text before the query may read a payment from it, as column expressions.

Spark's parser reads the first JSON value and leaves what follows, takes the last of equal names, and writes out the
digits of a DECIMAL: `1e999999999` would never end. Each of these is found here, by Jackson, within the generated code.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from fraud_filter import schema as layout
from fraud_filter.query.json_column import JsonReader, member_text
from fraud_filter.schema import PaymentSchema

if TYPE_CHECKING:
    from pyspark.sql import Column

#: A name that follows itself in a sorted list of names, each behind ": ", with NUL between them.
_REPEATED = r"(?:^|\x00)(: [^\x00]*+)\x00\1(?:\x00|$)"
_LONGEST_NAME = 100
#: What Jackson takes for white space.
_BLANK = r"^[ \t\r\n]*+\z"
#: A shorter text without such an exponent, and without a character in hexadecimal digits, has no number that Java would
#: write out.
_LONG_DIGITS, _LONG_EXPONENT = 900, r"[eE][+,-]*\d(?:,*\d){2}|\\u"
#: `\d` is a digit of any script, as in Python.
_ANY_SCRIPT = "(?U)"


class JsonCheck:
    """The checks of records' texts for one schema."""

    def __init__(self, text: Column, schema: PaymentSchema) -> None:
        """`text` is a column of type STRING."""
        self._text = text
        first = JsonReader()
        only = first.one_value()
        self._first, self._only, self._unique = (reader.members(text) for reader in (first, only, only.unique_names()))
        self._decimals = [field.name for field in schema.fields if field.is_decimal]
        # A tree holds each value: nearly all payments need none, and those that are refused anyway.
        suspicious = (F.length(text) >= _LONG_DIGITS) | text.rlike(_ANY_SCRIPT + _LONG_EXPONENT)
        self._tree = first.all_digits().tree(F.when(self._unique.isNotNull() & suspicious, text).otherwise("{}"))

    def text(self) -> Column:
        """The text if it fits, null otherwise: it is blank, or one JSON object, all names unique, with decimals that
        can be read."""
        read = self._unique.isNotNull()
        if self._decimals:
            endless = (self._is_endless(name) for name in self._decimals)
            read = reduce(lambda one, other: one & ~other, endless, read & self._tree.isNotNull())
        return F.when(F.coalesce(read, F.lit(False)) | self._text.rlike(_BLANK), self._text)

    def flaw(self, fitting: Column) -> Column:
        """Why a text does not fit, as a reject reason, or null; `fitting` is a column with what `text` gives."""
        why = (
            F.when(self._first.isNull(), F.lit(layout.REASON_MALFORMED))
            .when(self._only.isNull(), F.lit(layout.REASON_TRAILING))
            .when(self._unique.isNull(), _with_detail(layout.REASON_DUPLICATE, self._repeated_name()))
        )
        if self._decimals:
            why = why.otherwise(_with_detail(layout.REASON_WRONG_TYPE, self._endless_names()))
        return F.when(fitting.isNull() & self._text.isNotNull(), why)

    def _is_endless(self, name: str) -> Column:
        text = member_text(self._tree, name)
        return (F.length(text) > layout.LONGEST_DECIMAL) | text.rlike(_ANY_SCRIPT + layout.ENDLESS_EXPONENT)

    def _endless_names(self) -> Column:
        """Null where no tree was made for a number that no Java decimal can hold."""
        names = F.concat_ws(",", *(F.when(self._is_endless(name), F.lit(name)) for name in self._decimals))
        return F.when(names != "", F.concat(F.lit(": "), names))

    def _repeated_name(self) -> Column:
        """Of the object itself; empty for names that repeat in an object within it, or are not in double quotes."""
        sorted_names = F.sort_array(F.json_object_keys(self._text))
        names = F.concat(F.lit(": "), F.array_join(sorted_names, "\0: "))
        name = F.regexp_extract(names, _REPEATED, 1).substr(1, len(": ") + _LONGEST_NAME)
        return F.regexp_replace(name, r"\p{Cntrl}", "?")


def _with_detail(reason: str, detail: Column) -> Column:
    """`detail` begins with ": ", or is empty or null."""
    return F.concat_ws("", F.lit(reason), detail)
