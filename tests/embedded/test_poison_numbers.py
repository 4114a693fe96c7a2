"""Numbers that Java would write out digit by digit: `1e999999999` as a DECIMAL took seconds, or never ended.

The bounds tell these from all others, also on a machine that is busy; they are no measure of speed. What each takes is
shown by `pytest -s`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from fraud_filter.config import load
from fraud_filter.query import decide as query
from fraud_filter.rules.ruleset import Rule, RuleSet
from fraud_filter.schema import Field, PaymentSchema
from input_records import COLUMNS

#: Types of payment.ddl that give a value a meaning of their own.
_TYPES = (
    *("STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "TIMESTAMP", "TIMESTAMP_NTZ"),
    *("DATE", "DECIMAL(10, 2)", "DECIMAL(38, 18)", "ARRAY<DECIMAL(10, 2)>", "STRUCT<a: DECIMAL(3)>"),
    *("STRUCT<a: DOUBLE, b: BIGINT>", "ARRAY<DOUBLE>", "MAP<STRING, BIGINT>"),
)
_SCHEMA = PaymentSchema(
    (Field("id", "STRING", True), *(Field(f"f{at}", kind, False) for at, kind in enumerate(_TYPES)))
)
#: With what stands around them no record is larger than the filter takes.
_MANY = load().max_record_bytes - 200
_SHORT = (
    *("1e100000", "1e-100000", "0e-100000", "1e300000", "-1e-300000", "1e999999999", "1e-999999999", "0e-999999999"),
    *("1e2147483647", "-1e-2147483647", "1e99999999999", "1" * 999, "1" * 900 + "e99999", "0." + "0" * 990 + "1"),
    *("1e\u0663\u0660\u0660\u0660\u0660\u0660", r"1\u0065300000"),
)
_LONG = ("1" * _MANY, "-0." + "1" * 400 + "e999," * ((_MANY - 400) // 5))
_DEEP = (
    *("[" * 900 + "1e999999999" + "]" * 900, "[" * _MANY, '{"a":' * (_MANY // 5)),
    *("[" + "1e999999999," * (_MANY // 12) + "1]", "[" + ("1" * 499 + ",") * (_MANY // 500) + "1]"),
    r"\u0001" * (_MANY // 6),
)
_REPEATS = 5


def _values(texts: tuple[str, ...]) -> list[bytes]:
    """Each text in each field, as it is and in quotes."""
    return [
        f'{{"id":"p","{field.name}":{value}}}'.encode()
        for text in texts
        for field in _SCHEMA.fields[1:]
        for value in (text, f'"{text}"')
    ]


def _milliseconds(spark: Any, values: Sequence[bytes]) -> list[float]:
    """What deciding about each record takes, at best of some times."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    # In one task for each time; what begins a task counts for its first record.
    rows = [(b"k", value, "payments", 0, at, None) for at, value in enumerate([b'{"id":"p"}', *values])]
    # Held by Java: otherwise a record also waits for the Python process that makes the rows, always at the same places.
    once = spark.createDataFrame(spark.sparkContext.parallelize(rows, 1), COLUMNS).localCheckpoint()
    records = reduce(lambda some, more: some.unionAll(more), [once] * _REPEATS).coalesce(1)
    rules = RuleSet(Path("rules.yml"), (Rule("any", 1, when="id = 'x'"),))
    clock = F.expr("bigint(reflect('java.lang.System', 'nanoTime'))")
    seen = query.judge(records, _SCHEMA, rules).select("_offset", "_reason", "_rules", clock).collect()
    best = [math.inf] * len(rows)
    for (*_, before), (at, *_, after) in itertools.pairwise(seen):
        best[at] = min(best[at], (after - before) / 1e6)
    assert {row["_reason"] is None for row in seen} == {True, False}
    print(f"measured: at most {max(best[1:]):.1f} ms")  # noqa: T201 - shown by pytest -s
    return best[1:]


def _slower_than(spark: Any, values: list[bytes], limit_ms: float) -> dict[bytes, float]:
    took = zip(values, _milliseconds(spark, values), strict=True)
    return {value[:60]: milliseconds for value, milliseconds in took if milliseconds > limit_ms}


def test_no_number_of_few_characters_is_written_out(spark: Any) -> None:
    assert _slower_than(spark, _values(_SHORT), 100) == {}


@pytest.mark.exhaustive  # the query goes on behind larger ones in test_fuzzed_records
def test_no_long_record_holds_the_query(spark: Any) -> None:
    assert _slower_than(spark, _values(_LONG + _DEEP), 300) == {}
