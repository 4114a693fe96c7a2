"""What real Spark says of predicates, and the words it is turned into."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import DoubleType

from fraud_filter.config import HOME
from fraud_filter.errors import UsageError
from fraud_filter.rule_check import check_rules
from fraud_filter.rules import Rule, RuleSet, load_rules
from fraud_filter.schema import load_schema

SCHEMA = load_schema(HOME / "app/payment.ddl")


def _check(spark: Any, when: str) -> None:
    check_rules(spark, RuleSet(Path("rules.yml"), (Rule("suspect", 7, when=when),)), SCHEMA)


def test_the_shipped_rules_are_right(spark: Any) -> None:
    check_rules(spark, load_rules(HOME / "app/rules.yml", SCHEMA), SCHEMA)


@pytest.mark.parametrize(
    "when",
    [
        "amount > 100 AND country <> card_country",
        "hour(created_at) < 5",
        "merchant RLIKE '^x' OR lower(merchant) LIKE 'casino%'",
        "created_at > timestamp'2026-01-01 00:00:00'",
        "amount / 0 > 1",
        "exists(array(amount), x -> x > 10)",
        "currency IN ('EUR', 'USD')",
    ],
)
def test_deterministic_predicates_of_one_payment_are_taken(spark: Any, when: str) -> None:
    _check(spark, when)


@pytest.mark.parametrize(
    ("when", "position", "reason"),
    [
        ("amnt > 1", "line 1, column 1", "`amnt` cannot be resolved. Did you mean"),
        ("amount > 1 AND\n  amnt > 2", "line 2, column 3", "`amnt` cannot be resolved"),
        ("amount >", "line 1, column 9", "Syntax error"),
        ("amount > 1; DROP TABLE x", "line 1, column 11", "Syntax error"),
        ("1 < sum(amount)", "line 1, column 5", "'sum' is not allowed in a rule: an aggregate"),
        ("any(amount > 3)", "line 1, column 1", "an aggregate"),
        ("row_number() OVER (ORDER BY amount) > 1", "line 1, column 1", "window"),
        ("lag(amount) > 1", "line 1, column 1", "window"),
        ("window(created_at, '1 minute').start IS NULL", "line 1, column 1", "window"),
        ("amount > (SELECT 1)", "line 1, column 10", "a subquery"),
        ("EXISTS (SELECT 1)", "line 1, column 1", "a subquery"),
        ("card_id IN (SELECT card_id FROM stolen)", "line 1, column 9", "a subquery"),
        ("created_at > current_timestamp()", "line 1, column 14", "'current_timestamp' is not allowed in a rule"),
        ("created_at > current_timestamp", "line 1, column 14", "time of evaluation"),
        ("to_date(created_at) = current_date", "line 1, column 23", "'current_date' is not allowed in a rule"),
        ("created_at > now()", "line 1, column 14", "'now' is not allowed in a rule"),
        ("unix_timestamp() > 5", "line 1, column 1", "time of evaluation"),
        ("amount > 1 OR rand() > 0.5", "line 1, column 15", "not deterministic"),
        ("uuid() = payment_id", "line 1, column 1", "not deterministic"),
        ("reflect('java.lang.System', 'exit', 0) = ''", "line 1, column 1", "not deterministic"),
        ("explode(array(1)) = 1", "line 1, column 1", "several rows"),
        ("raise_error('x')", "line 1, column 1", "stop the query"),
        ("nobody(amount) > 1", "line 1, column 1", "Cannot resolve routine `nobody`"),
        ("amount", "'amount'", "of type double"),
        ("*", "line 1, column 1", "name the column"),
        ("1 = 1 AS always", "line 1, column 1", "no name of its own"),
    ],
)
def test_what_can_not_run_in_every_mode_is_refused_with_rule_reason_and_position(
    spark: Any, when: str, position: str, reason: str
) -> None:
    with pytest.raises(UsageError) as refused:
        _check(spark, when)
    message = str(refused.value)
    assert message.startswith("rules.yml, line 7, rule 'suspect': ")
    assert position in message
    assert reason in message


def test_a_registered_python_function_is_refused(spark: Any) -> None:
    spark.udf.register("suspicion", lambda amount: amount, DoubleType())
    with pytest.raises(UsageError, match="Python function would run once a record"):
        _check(spark, "suspicion(amount) > 1")
