"""What must hold of a record's text before the query may read a payment from it, as column expressions.

Spark's parser reads the first JSON value and leaves what follows, takes the last of equal names, and writes out the
digits of a DECIMAL: `1e999999999` would never end. Each of these is found here, by Jackson, within the generated code.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from fraud_filter import schema as layout
from fraud_filter.query.json_column import JsonReader, is_object, member_text
from fraud_filter.schema import PaymentSchema

if TYPE_CHECKING:
    from pyspark.sql import Column

#: A name that follows itself in a sorted list of names, each behind ": ", with NUL between them.
_REPEATED = r"(?:^|\x00)(: [^\x00]*+)\x00\1(?:\x00|$)"
_LONGEST_NAME = 100


class JsonCheck:
    """The checks of records' texts for one schema."""

    def __init__(self, text: Column, schema: PaymentSchema) -> None:
        """`text` is the record's value as a column of type STRING."""
        self._text = text
        first = JsonReader()
        only = first.one_value()
        unique = only.unique_names()
        self._first, self._only, self._unique = (reader.tree(text) for reader in (first, only, unique))
        self._decimals = [field.name for field in schema.fields if field.is_decimal]
        self._tree = unique.all_digits().tree(text) if self._decimals else self._unique

    def columns(self) -> tuple[Column, Column]:
        """`_text`, the text if it fits, null otherwise; and `_flaw`, why it does not, as a reject reason, or null.

        A text fits that is blank, or one JSON value, all names unique, with decimals that can be read.
        """
        endless = (self._is_endless(name) for name in self._decimals)
        bounded = reduce(lambda one, other: one & ~other, endless, self._tree.isNotNull())
        fits = F.coalesce(bounded, F.lit(False)) | self._text.isNull()
        return F.when(fits, self._text).alias("_text"), F.when(~fits, self._why()).alias("_flaw")

    def _why(self) -> Column:
        why = (
            F.when(~F.coalesce(is_object(self._first), F.lit(False)), F.lit(layout.REASON_MALFORMED))
            .when(self._only.isNull(), F.lit(layout.REASON_TRAILING))
            .when(self._unique.isNull(), _with_detail(layout.REASON_DUPLICATE, self._repeated_name()))
        )
        return why.otherwise(_with_detail(layout.REASON_WRONG_TYPE, self._endless_names())) if self._decimals else why

    def _is_endless(self, name: str) -> Column:
        text = member_text(self._tree, name)
        return (F.length(text) > layout.LONGEST_DECIMAL) | text.rlike(layout.ENDLESS_EXPONENT)

    def _endless_names(self) -> Column:
        """Null where no tree was made for a number that no Java decimal can hold."""
        names = (F.when(self._is_endless(name), F.lit(name)) for name in self._decimals)
        return F.concat(F.lit(": "), F.nullif(F.concat_ws(",", *names), F.lit("")))

    def _repeated_name(self) -> Column:
        """Of the object itself; empty for names that repeat in an object within it, or are not in double quotes."""
        sorted_names = F.sort_array(F.json_object_keys(self._text))
        names = F.concat(F.lit(": "), F.array_join(sorted_names, "\0: "))
        name = F.regexp_extract(names, _REPEATED, 1).substr(1, len(": ") + _LONGEST_NAME)
        return F.regexp_replace(name, r"\p{Cntrl}", "?")


def _with_detail(reason: str, detail: Column) -> Column:
    """`detail` begins with ": ", or is empty or null."""
    return F.concat_ws("", F.lit(reason), detail)
