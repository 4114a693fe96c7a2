"""The table of docs/rules.md: what a field of each type reads of each kind of JSON value."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from decider import Decider
from fraud_filter.home import HOME
from fraud_filter.query import decide as query
from fraud_filter.rules.ruleset import Rule, RuleSet
from fraud_filter.schema import Field, PaymentSchema
from input_records import input_records

TYPES = (
    *("STRING", "BOOLEAN", "INT", "DOUBLE", "DECIMAL(10, 2)", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "ARRAY<INT>"),
    *("MAP<STRING, INT>", "STRUCT<a: INT>"),
)
VALUES = (
    *('"a"', '"12.345"', '"NaN"', '"2026-03-01"', '"2026-03-01T12:00:00Z"', '"2026-03-01 12:00:00.5"', '"12:00:00"'),
    *('"1e3"', "true", "7", "2147483648", "1.5", "1e3", "1e400", "[7]", "[7, null]", '{"a": 7}', '{"a": "7"}', "{}"),
)


def _table(spark: Any) -> str:
    """As Markdown: what each type reads of a value, and no line of a type that rejects it."""
    columns = {kind: _column(spark, kind) for kind in TYPES}
    lines = ["| JSON | what is read |", "|---|---|"]
    for at, value in enumerate(VALUES):
        read: dict[str, list[str]] = {}
        for kind, column in columns.items():
            if column[at]:
                read.setdefault(column[at], []).append(f"`{kind}`")
        told = "; ".join(", ".join(kinds) + " " + text for text, kinds in read.items())
        lines.append(f"| `{value}` | {told or '-'} |")
    return "\n".join(lines)


def _column(spark: Any, kind: str) -> list[str]:
    """What Spark reads; the oracle must reject the same."""
    schema = PaymentSchema((Field("x", kind, False),))
    rules = RuleSet(Path("rules.yml"), (Rule("r", 1, when="true"),))
    values = [f'{{"x": {value}}}'.encode() for value in VALUES]
    judged = query.judge(input_records(spark, values), schema, rules)
    shown = judged.selectExpr("_reason", "CAST(x AS STRING)", "_offset").orderBy("_offset").collect()
    reasons = [decision.reason for decision in Decider(schema, rules).decide(values)]
    assert reasons == [reason and reason.partition(":")[0] for reason, *_ in shown], kind
    assert {reason for reason in reasons if reason} == {"wrong-type"}
    return ["" if reason else f"`{text}`" for reason, text, _ in shown]


def test_the_table_of_the_page_is_what_is_read(spark: Any) -> None:
    page = (HOME / "docs/rules.md").read_text(encoding="utf-8")
    told = re.search(r"^\| JSON \|.*?(?=\n\n)", page, re.MULTILINE | re.DOTALL)
    made = _table(spark)
    assert told is not None, made
    assert told[0] == made, made
