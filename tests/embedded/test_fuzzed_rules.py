"""Every record is read alike, and what the language takes has one value, by Spark and by the audit.

`--hypothesis-seed=N` repeats a run. In CI the seed is always the same.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pyspark.sql import Row

from decider import Decider
from drawn_rules import RuleDrawer, drawn_schema
from fraud_filter.oracle.payments import PaymentReader
from fraud_filter.oracle.predicates import evaluator
from fraud_filter.query import decide as query
from fraud_filter.rules.language import Node, parts_of
from fraud_filter.rules.ruleset import RuleSet, load_rules
from fraud_filter.schema import PaymentSchema
from hostile_records import SCHEMA, drawn_values, large_payments, picked_values, write_files
from input_records import input_records

#: Records that are drawn for a schema, and those of them that the rules see.
_RECORDS, _SEEN = 1000, 120
_DRAWN = 1200
#: Expressions that are tried in one query.
_AT_ONCE = 80
#: Times are compared as the oracle has them; Python's own know less than Spark's.
_AS_NUMBERS = {
    "TIMESTAMP": "unix_micros({0})",
    "TIMESTAMP_NTZ": "unix_micros(CAST({0} AS TIMESTAMP))",
    "DATE": "unix_date({0})",
    "STRUCT": "if({0} IS NULL, NULL, named_struct('total', {0}.total, 'items', transform({0}.items, i -> "
    "named_struct('at', unix_micros(i.at), 'n', i.n))))",
}
#: Words that mean less than they do to Spark alone.
_OWN = ("lower", "upper", "lcase", "ucase", "RLIKE")
_ARITHMETIC = ("+", "-", "*", "%", "neg", "abs")
#: What a sentence that is given to Spark as it is written reads in place of columns.
_READ_AS = {**dict.fromkeys(("TINYINT", "SMALLINT", "INT"), "BIGINT"), "FLOAT": "DOUBLE", "DATE": "TIMESTAMP"}
_READ_AS["TIMESTAMP_NTZ"] = "TIMESTAMP"


def test_spark_and_the_audit_agree_on_what_is_drawn(spark: Any, tmp_path: Path, seed: int, times: int) -> None:
    rules = load_rules(write_files(tmp_path)["rules"], SCHEMA)
    for number in range(times):
        choose = random.Random(f"{seed} {number}")
        schema = drawn_schema(SCHEMA, choose)
        for one in (SCHEMA, replace(SCHEMA, time_unit="ms"), schema):
            _compare_reading(spark, one, rules, [*picked_values(one), *drawn_values(one, _RECORDS, choose)])
        _compare_values(spark, schema, choose)


def _compare_reading(spark: Any, schema: PaymentSchema, rules: RuleSet, values: Sequence[bytes | None]) -> None:
    """Rejected or not, each field, and the rules that match."""
    shown = [_AS_NUMBERS.get(field.kind.name, "{0}").format(f"`{field.name}`") for field in schema.fields]
    judged = query.judge(input_records(spark, values), schema, rules)
    rows = judged.selectExpr("_offset", "_reason", "_rules", *shown).orderBy("_offset").collect()
    reasons: Counter[str | None] = Counter()
    matched: Counter[str] = Counter()
    different = []
    for value, own, (_, reason, names, *fields) in zip(
        values, Decider(schema, rules).decide(values), rows, strict=True
    ):
        one = (own.reason, own.rules, *map(_exact, own.fields))
        other = (reason.partition(":")[0], ()) if reason else (None, tuple(names), *map(_exact, fields))
        if one != other:
            apart = [pair for pair in zip_longest(one, other) if pair[0] != pair[1]]
            different.append(f"{_shown(value)}: audit and Spark: {str(apart)[:300]}")
        reasons[own.reason] += 1
        matched.update(own.rules)
    assert not different, f"{len(different)} differ\n" + "\n".join(different)
    print(f"{len(values)} records: {reasons}, {matched}")  # noqa: T201
    kinds = {"empty-record", "malformed-json", "trailing-content", "duplicate-key", "missing-field", "wrong-type"}
    assert reasons.keys() == {None, *kinds}
    assert matched.keys() == {rule.name for rule in rules.rules}


def _shown(value: bytes | None) -> str:
    return repr(value if value is None or len(value) < 200 else value[:100] + b"..." + value[-50:])


def _exact(value: Any) -> Any:
    """Tells -0.0 from 0.0, and has the same for Spark's nested values and the oracle's."""
    if isinstance(value, Row):
        value = value.asDict()
    if isinstance(value, list) and value and type(value[0]) is tuple:  # a map
        value = dict(value)
    if isinstance(value, dict):
        return {name: _exact(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_exact(part) for part in value] or {}  # a map without names
    return value if isinstance(value, Decimal) else repr(value)


def _compare_values(spark: Any, schema: PaymentSchema, choose: random.Random) -> None:
    """What the audit and Spark make of expressions, and of those Spark alone."""
    read = PaymentReader(schema).read
    drawn = [value for value in drawn_values(schema, _RECORDS, choose) if len(value) < 5000 and not read(value).reason]
    values = [*drawn[:_SEEN], *large_payments(schema)]
    rows = [read(value).fields for value in values]
    payments = query.read_payments(input_records(spark, values).coalesce(1), schema).cache()
    as_written = payments.selectExpr(
        *(f"CAST(`{one.name}` AS {_READ_AS.get(one.type, one.type)}) AS `{one.name}`" for one in schema.fields)
    )
    places = {field.name: at for at, field in enumerate(schema.fields)}
    drawer = RuleDrawer(schema, choose)
    different = []
    for _ in range(0, _DRAWN, _AT_ONCE):
        sentences = [drawer.draw() for _ in range(_AT_ONCE)]
        spark_values = _selected(payments, [_counted(node.spark, node) for _, node in sentences])
        raw_values = _selected(
            as_written, [_counted(when if _is_plain(when, node) else "NULL", node) for when, node in sentences]
        )
        for (when, node), its, raw in zip(sentences, spark_values, raw_values, strict=True):
            own = list(map(evaluator(node, places), rows))
            for value, one, two, three in zip(values, own, its, raw, strict=True):
                if not _seen(one) == _seen(two) == _seen(three if _is_plain(when, node) else two):
                    different.append(
                        f"{when}: audit {one!r}, Spark {two!r}, as it is written {three!r}: {value[:300]!r}"
                    )
                    break
    payments.unpersist()
    assert len(rows) > _SEEN
    print(f"{_DRAWN} expressions on {len(rows)} payments: {_DRAWN * len(rows)} pairs")  # noqa: T201
    assert not different, f"{len(different)} differ\n" + "\n".join(different)


def _seen(value: Any) -> Any:
    """Without the sign of zero, which no rule sees."""
    return repr(value + 0.0) if isinstance(value, float) else value


def _counted(text: str, node: Node) -> str:
    """Times as the oracle has them."""
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


def _is_plain(when: str, node: Node) -> bool:
    """Whether Spark alone understands a sentence as it is written: with whole numbers of other sizes, and digits of
    decimals, its arithmetic goes round elsewhere."""
    return not any(word in when for word in _OWN) and not any(
        one.word == "/" or (one.word in _ARITHMETIC and one.type != "DOUBLE") for one in parts_of(node)
    )
