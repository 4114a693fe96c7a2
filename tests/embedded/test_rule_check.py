"""Spark's own part in the check of rules, and the inventory of its functions: words of docs/rules.md, or refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from fraud_filter.errors import UsageError
from fraud_filter.home import HOME
from fraud_filter.rules.check import check_rules
from fraud_filter.rules.ruleset import Rule, RuleSet, load_rules
from fraud_filter.rules.words import FUNCTIONS, OTHERWISE, QUANTIFIERS, REFUSED, REWRITTEN
from fraud_filter.schema import load_schema
from lab.harness.tables import markdown, write_between
from running import call

SCHEMA = load_schema(HOME / "app/payment.ddl")
DOCS = HOME / "docs/rules.md"
#: Functions of Spark that are refused, with what to use, as `rules check` says it.
REFUSALS = HOME / "tests/data/refused_functions.md"
#: Functions of Spark that are refused without a reason of their own.
OTHERS = HOME / "tests/data/other_functions.txt"
#: Operators, by why they are taken; functions are in the list itself.
OPERATORS = (
    ("compares; null where an operand is", "= == <> != < <= > >= BETWEEN IN"),
    ("compares, and is never null", "<=> IS_NULL IS_TRUE IS_FALSE IS_UNKNOWN IS_DISTINCT_FROM isnull isnotnull"),
    ("joins conditions", "AND OR NOT !"),
    ("is a number, and goes round at the limits of its type", "+ - *"),
    ("is a number, and null for a division by zero", "/ % DIV mod"),
    ("is its operands together", "||"),
    ("is one of its operands", "CASE if nullif"),
    ("is a conversion that has a value for every value", "CAST"),
    ("looks into a nested value; null where there is none", ". [0] ['name'] exists forall array_contains"),
    ("has a pattern of the kinds below", "LIKE ILIKE RLIKE REGEXP"),
)


def test_the_shipped_rules_are_right(spark: Any) -> None:
    for file in ("app/rules.yml", "app/rules-velocity.yml", "app/lab/bench/velocity.yml", "app/lab/bench/decay.yml"):
        check_rules(spark, load_rules(HOME / file, SCHEMA), SCHEMA)


def test_a_rule_that_spark_refuses_is_named(spark: Any) -> None:
    """None is known: here Spark lacks a column that the rule was read with."""
    rules = RuleSet(Path("rules.yml"), (Rule("fine", 3, when="amount > 1"), Rule("r", 7, when="hour(created_at) < 5")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FUNCTIONS, "hour", FUNCTIONS["hour"]._replace(name="no_such_function"))
        with pytest.raises(UsageError, match=r"rules\.yml, line 7, rule 'r': Spark refuses 'hour\(created_at\) < 5'"):
            check_rules(spark, rules, SCHEMA)


def test_there_is_a_verdict_on_every_function_of_spark(spark: Any) -> None:
    """WRITE_DOCS=1 writes it."""
    listed = spark._jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.functionSet().iterator()
    known = set()
    while listed.hasNext():
        known.add(listed.next().funcName())
    assert len(known) > 400
    words = {*FUNCTIONS, *REWRITTEN, *QUANTIFIERS, "and", "in", "not", "or", "when"}
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


def test_the_verb_tells_all_without_spark(tmp_path: Path) -> None:
    file = tmp_path / "rules.yml"
    file.write_text(
        "rules:\n  - {name: a, when: amount > now()}\n  - {name: b, wen: x}\n  - {name: c, when: amount > 1}\n"
    )
    done = call("rules", "check", "--rules", file)
    assert done.returncode == 2, done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("fraud-filter: rules.yml, line ")]
    assert [line.partition("line ")[2][0] for line in told] == ["2", "3"], done.stderr
    file.write_text("rules:\n  - {name: c, when: amount > 1}\n")
    done = call("rules", "check", "--rules", file)
    assert (done.returncode, "1 rules OK" in done.stdout) == (0, True), done.stderr
