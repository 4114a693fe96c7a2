"""What the language takes has one value, the same to Spark and to the audit, for every record.

`--hypothesis-seed=N` repeats a run; it prints its seed. In CI the seed is always the same.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from drawn_rules import RuleDrawer, drawn_schema, hostile_payments
from fraud_filter.oracle.payments import PaymentReader
from fraud_filter.oracle.predicates import evaluator
from fraud_filter.query import decide as query
from fraud_filter.rules.language import Node, parts_of
from oracle_cases import SCHEMA

_DRAWN = 1200
#: Expressions that are tried in one query.
_AT_ONCE = 80
#: Words that mean less than they do to Spark alone.
_OWN = ("lower", "upper", "lcase", "ucase", "RLIKE")
_ARITHMETIC = ("+", "-", "*", "%", "neg", "abs")
#: What a sentence that is given to Spark as it is written reads in place of columns.
_READ_AS = {**dict.fromkeys(("TINYINT", "SMALLINT", "INT"), "BIGINT"), "FLOAT": "DOUBLE", "DATE": "TIMESTAMP"}
_READ_AS["TIMESTAMP_NTZ"] = "TIMESTAMP"


def _plain(value: Any) -> Any:
    """Without the sign of zero, which no rule sees."""
    if isinstance(value, float):
        return repr(value + 0.0)
    return value.normalize() if isinstance(value, Decimal) else value


def test_spark_and_the_audit_give_one_value_to_what_is_drawn(spark: Any, seed: int, times: int) -> None:
    print(f"seed {seed}")  # noqa: T201
    for number in range(times):
        _compare(spark, random.Random(f"{seed} {number}"))


def _compare(spark: Any, choose: random.Random) -> None:
    schema = drawn_schema(SCHEMA, choose)
    values = list(hostile_payments(schema, choose))
    read = PaymentReader(schema).read
    assert [value[:300] for value in values if read(value).reason] == []
    rows = [read(value).fields for value in values]
    records = spark.createDataFrame([(bytearray(value),) for value in values], "_value BINARY").coalesce(1)
    payments = query.read_payments(records, schema).cache()
    as_written = payments.selectExpr(
        *(f"CAST(`{one.name}` AS {_READ_AS.get(one.type, one.type)}) AS `{one.name}`" for one in schema.fields)
    )
    places = {field.name: at for at, field in enumerate(schema.fields)}
    drawer = RuleDrawer(schema, choose)
    different = []
    for _ in range(0, _DRAWN, _AT_ONCE):
        drawn = [drawer.draw() for _ in range(_AT_ONCE)]
        spark_values = _selected(payments, [_counted(node.spark, node) for _, node in drawn])
        raw_values = _selected(as_written, [_counted(_raw(when, node), node) for when, node in drawn])
        for (when, node), its, raw in zip(drawn, spark_values, raw_values, strict=True):
            own = list(map(evaluator(node, places), rows))
            for value, one, two, three in zip(values, own, its, raw, strict=True):
                if not _plain(one) == _plain(two) == _plain(three if _is_plain(when, node) else two):
                    different.append(
                        f"{when}: audit {one!r}, Spark {two!r}, as it is written {three!r}: {value[:300]!r}"
                    )
                    break
    payments.unpersist()
    print(f"{_DRAWN} expressions on {len(rows)} payments: {_DRAWN * len(rows)} pairs")  # noqa: T201
    assert not different, f"{len(different)} differ\n" + "\n".join(different)


def _counted(text: str, node: Node) -> str:
    """Python's own times know less than Spark's."""
    return f"unix_micros(CAST({text} AS TIMESTAMP))" if node.kind == "TIMESTAMP" else f"({text})"


def _selected(payments: Any, texts: list[str]) -> list[Sequence[Any]]:
    """A column of values for each expression; of one that Spark refuses, what it says of it."""
    try:
        return list(zip(*payments.selectExpr(*texts).collect(), strict=True))
    except Exception as error:
        if len(texts) == 1:
            return [[str(error).splitlines()[0]] * payments.count()]
        half = len(texts) // 2
        return _selected(payments, texts[:half]) + _selected(payments, texts[half:])


def _raw(when: str, node: Node) -> str:
    return when if _is_plain(when, node) else node.spark


def _is_plain(when: str, node: Node) -> bool:
    """Whether Spark alone understands a sentence as it is written: with whole numbers of other sizes, and digits of
    decimals, its arithmetic goes round elsewhere."""
    return not any(word in when for word in _OWN) and not any(
        one.word == "/" or (one.word in _ARITHMETIC and one.type != "DOUBLE") for one in parts_of(node)
    )
