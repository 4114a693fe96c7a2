"""What is refused of a predicate without Spark is refused by Spark, too: a wrong refusal is worse than none."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from drawn_rules import RuleDrawer, spark_functions
from fraud_filter.home import HOME
from fraud_filter.rules.check import find_refused
from fraud_filter.rules.ruleset import Rule, RuleSet
from fraud_filter.rules.syntax import find_flaw
from fraud_filter.schema import load_schema

SCHEMA = load_schema(HOME / "app/payment.ddl")
RECORD_BYTES = 2**20
#: What predicates are made of, and what a slip of the pen makes of them.
_PARTS = (
    *("amount", "Merchant", "`country`", "amnt", "`x", "created_at", "is_bad", "date", "user", "x", "3ds", "interval"),
    *("'a'", "'it''s'", r"'it\'s'", "'it's'", '"b"', '"c', "r'\\'", "'(['", "1", "-2.5", "1e3", "5L", "true", "NULL"),
    *("(", ")", "[", "]", "()", "hour(", "lower(", "abs(", "array(1)[0]", "exists(array(1), x -> x > 1)", "$$", "--"),
    *(
        "=",
        "<>",
        ">",
        "AND",
        "OR",
        "NOT",
        "IN",
        "LIKE",
        "RLIKE",
        "IS NULL",
        "BETWEEN",
        "+",
        "||",
        "/*",
        "*/",
        ",",
        "\n",
    ),
    *("(1, 2)", "> 1", "= 'x'", "AND amount > 1", ") > 3", "CASE WHEN", "THEN", "END", "AS y", "::INT", ".", "`", "\\"),
)
_DRAWN = 400
_FUNCTIONS = 150


def _drawn(spark: Any, seed: int, times: int) -> list[str]:
    choose = random.Random(seed)
    texts = [" ".join(choose.choices(_PARTS, k=choose.randint(1, 7))) for _ in range(_DRAWN * times)]
    texts += ["".join(choose.choices(_PARTS, k=choose.randint(1, 5))) for _ in range(_DRAWN * times)]
    drawer = RuleDrawer(spark_functions(spark), SCHEMA, ["file:/x"], seed)
    for whole in (drawer.draw() for _ in range(_FUNCTIONS * times)):
        at = choose.randrange(len(whole) + 1)
        texts += [whole, whole[:at] + choose.choice("'\"`()[]ax,") + whole[at:], whole[:at] + whole[at + 1 :]]
    return texts


def test_spark_refuses_all_that_is_refused_without_it(spark: Any, seed: int, times: int) -> None:
    refused = {text: flaw for text in _drawn(spark, seed, times) if (flaw := find_flaw(text, SCHEMA))}
    reasons = ("no end", "not closed", "closes no", "unknown column", "a predicate is true or false")
    for reason in reasons:
        assert any(reason in flaw for flaw in refused.values()), reason
    rules = tuple(Rule(f"r{at}", 1, when=text) for at, text in enumerate(refused))
    agreed = {rule.when for rule in find_refused(spark, RuleSet(Path("rules.yml"), rules), SCHEMA, RECORD_BYTES)}
    assert {text: flaw for text, flaw in refused.items() if text not in agreed} == {}
