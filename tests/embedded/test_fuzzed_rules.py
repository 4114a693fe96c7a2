"""What the language takes has one value, the same to Spark and to the audit, for every record.

`--hypothesis-seed=N` repeats a run; it prints its seed. In CI the seed is always the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from drawn_rules import RuleDrawer, hostile_payments
from fraud_filter.oracle.payments import PaymentReader
from fraud_filter.oracle.predicates import evaluator
from fraud_filter.query import decide as query
from fraud_filter.rules.language import Node
from oracle_cases import SCHEMA

_DRAWN = 1200
#: Expressions that are tried in one query.
_AT_ONCE = 80
#: Words that mean less, or another type, than they do to Spark alone.
_OWN = ("lower", "upper", "lcase", "ucase", "RLIKE", "ratio", "local_time")
#: Python's own times know less than Spark's.
_COUNTED = {"DATE": "unix_date{}", "TIMESTAMP": "unix_micros{}"}


def _plain(value: Any) -> Any:
    """Without the sign of zero, which no rule sees."""
    if isinstance(value, float):
        return repr(value + 0.0)
    return value.normalize() if isinstance(value, Decimal) else value


def test_spark_and_the_audit_give_one_value_to_what_is_drawn(spark: Any, seed: int, times: int) -> None:
    values = list(hostile_payments(SCHEMA))
    read = PaymentReader(SCHEMA).read
    assert [value[:300] for value in values if read(value).reason] == []
    rows = [read(value).fields for value in values]
    records = spark.createDataFrame([(bytearray(value),) for value in values], "_value BINARY").coalesce(1)
    payments = query.read_payments(records, SCHEMA).cache()
    places = {field.name: at for at, field in enumerate(SCHEMA.fields)}
    drawer = RuleDrawer(SCHEMA, seed)
    drawn: list[tuple[str, Node]] = [drawer.draw() for _ in range(_DRAWN * times)]
    different = []
    for first in range(0, len(drawn), _AT_ONCE):
        some = drawn[first : first + _AT_ONCE]
        both = [
            _COUNTED.get(node.kind, "{}").format(f"({text})")
            for when, node in some
            for text in (node.spark, _raw(when, node))
        ]
        columns = iter(_selected(payments, both))
        for (when, node), its, raw in zip(some, columns, columns, strict=True):
            own = list(map(evaluator(node, places), rows))
            for value, one, two, three in zip(values, own, its, raw, strict=True):
                if not _plain(one) == _plain(two) == _plain(three):
                    different.append(
                        f"{when}: audit {one!r}, Spark {two!r}, as it is written {three!r}: {value[:300]!r}"
                    )
                    break
    print(f"{len(drawn)} expressions on {len(rows)} payments: {len(drawn) * len(rows)} pairs")  # noqa: T201
    assert not different, f"{len(different)} differ\n" + "\n".join(different)


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
    return node.spark if any(word in when for word in _OWN) else when
