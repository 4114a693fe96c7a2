"""What Spark makes of the shipped rules, what `rules test` says, and the tables of docs/rules.md."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from decider import Decider
from fraud_filter.config import load
from fraud_filter.home import HOME
from fraud_filter.query import decide as query
from fraud_filter.query.rules_test import as_table, try_rules
from fraud_filter.rules.language import read_predicate
from fraud_filter.rules.ruleset import Rule, RuleSet, load_rules
from fraud_filter.rules.words import EXISTS, FUNCTIONS, OTHERWISE, REFUSED
from fraud_filter.schema import Field, PaymentSchema, load_schema
from input_records import input_records
from lab.harness.tables import markdown, write_between
from running import payment

SCHEMA = load_schema(HOME / "app/payment.ddl")
DOCS = HOME / "docs/rules.md"
#: Functions of Spark that are refused, with what to use, as `rules check` says it.
REFUSALS = HOME / "tests/data/refused_functions.md"
#: Functions of Spark that are refused without a reason of their own.
OTHERS = HOME / "tests/data/other_functions.txt"
#: Operators, by why they are taken; functions are in the list itself.
OPERATORS = (
    ("compares; null where an operand is", "= == <> != < <= > >= BETWEEN IN"),
    ("compares, and is never null", "<=> IS_NULL"),
    ("joins conditions", "AND OR NOT"),
    ("is a number, and goes round at the limits of BIGINT", "+ - *"),
    ("is a number, and null for a division by zero", "/ %"),
    ("is one of its operands, or null", "CASE"),
    ("is a conversion that has a value for every value", "CAST"),
    ("looks into a nested value; null where there is none", ". [0] ['name'] exists"),
    ("has a pattern of the kinds below", "LIKE RLIKE"),
)


def test_the_shipped_rules_are_right(spark: Any) -> None:
    for file in ("app/rules.yml", "app/rules-velocity.yml", "app/lab/bench/velocity.yml", "app/lab/bench/decay.yml"):
        rules = load_rules(HOME / file, SCHEMA)
        columns = rules.columns(SCHEMA)
        texts = [read_predicate(rule.when, columns).spark for rule in rules.rules if rule.when]
        types = {kind for _, kind in spark.createDataFrame([], columns.ddl).selectExpr(*texts).dtypes}
        assert types == {"boolean"}, file


def test_each_line_of_a_file_gets_a_verdict(spark: Any, tmp_path: Path) -> None:
    """As `fraud-filter rules test` gives it."""
    odd = (payment("p1", 1).replace(b"Corner", text) for text in ("a\u2028b\u0085".encode(), b"\xff", b"\x00"))
    lines = [payment("[/p2] :smile:", 6000), payment("p3", 1) + b" x", b"", payment("p5", -1), *odd]
    (tmp_path / "payments.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    verdicts = list(try_rules(spark, str(tmp_path / "payments.jsonl"), SCHEMA, load_rules(load().rules, SCHEMA)))
    assert [(verdict.line, verdict.payment, verdict.rules, verdict.reason) for verdict in verdicts] == [
        (1, "[/p2] :smile:", ("large-amount",), None),
        (2, "", (), "trailing-content"),
        (3, "", (), "empty-record"),
        (4, "p5", ("invalid-amount",), None),
        (5, "p1", (), None),
        *((line, "", (), "malformed-json") for line in (6, 7)),
    ]
    assert "[/p2] :smile:" in as_table(iter(verdicts))


def test_there_is_a_verdict_on_every_function_of_spark(spark: Any) -> None:
    """WRITE_DOCS=1 writes it."""
    listed = spark._jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.functionSet().iterator()
    known = set()
    while listed.hasNext():
        known.add(listed.next().funcName())
    assert len(known) > 400
    words = {*FUNCTIONS, EXISTS, "and", "in", "not", "or", "when"}
    assert {word.name for word in FUNCTIONS.values()} <= known
    taken = {
        why: [name.replace("_", " ") if name.isupper() else name for name in names.split()] for why, names in OPERATORS
    }
    for name, word in FUNCTIONS.items():
        taken.setdefault(word.why, []).append(name)
    others = [name for name in known - words - REFUSED.keys() if name.isidentifier()]
    refused: dict[str, list[str]] = {}
    for name, why in REFUSED.items():
        refused.setdefault(why, []).append(name)
    others += refused.pop(OTHERWISE, [])
    words_table = markdown(("it …", "words"), ((why, _code(names)) for why, names in taken.items()))
    refused_table = markdown(
        ("refused", "because, and what to use"), ((_code(sorted(refused[why])), why) for why in sorted(refused))
    )
    if os.environ.get("WRITE_DOCS") == "1":
        write_between(DOCS, "words", words_table)
        REFUSALS.write_text(refused_table + "\n")
        OTHERS.write_text("".join(f"{name}\n" for name in sorted(others)))
    assert words_table in DOCS.read_text()
    assert REFUSALS.read_text() == refused_table + "\n"
    assert OTHERS.read_text().split() == sorted(others)


def _code(names: list[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


# -- the table of docs/rules.md: what a field of each type reads of each kind of JSON value


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
