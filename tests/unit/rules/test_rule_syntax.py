"""What is told of a predicate without Spark; whether Spark agrees is the matter of tests/embedded."""

from __future__ import annotations

import pytest

from fraud_filter.home import HOME
from fraud_filter.rules.syntax import find_flaw
from fraud_filter.schema import Field, PaymentSchema, load_schema

SCHEMA = load_schema(HOME / "app/payment.ddl")
#: Taken by Spark, or refused by it alone: nothing may be said of them here.
LEFT_TO_SPARK = (
    *("amount > 1", "AMOUNT > 1 AND `Merchant` = 'x'", "merchant = 'it''s'", r"merchant = 'it\'s'", "merchant = '(['"),
    *(r"merchant = r'\' OR amount > 1", 'merchant = R"it\'s"', "amount > 1 -- isn't it", "amount > 1 /* :( */"),
    *('merchant = "it\'s"', "`amount` > (1)", "array(1, 2)[0] = 1", "exists(array(amount), x -> x > 10)", "true"),
    *("created_at > current_date", "user = merchant", "session_user = merchant", "localtimestamp > created_at"),
    *("extract(HOUR FROM created_at) > 5", "timestampadd(HOUR, 1, created_at) > created_at", "nobody(amount) > 1"),
    *("amount >", "amount > 1; DROP TABLE x", "a.b = 1", "gr\u00f6\u00dfe > 1", "merchant = 'x' 'y'", "amount > 1D"),
    *("trim(BOTH 'x' FROM merchant) = 'y'", "amount BETWEEN 1 AND 2", "1 = 1 AS always", "*", "$$ ( $$ = merchant"),
    *("not (amount <=> 1)", "hour(created_at) < 5", "(amount > 1)", "if(amount > 1, true, false)"),
)


@pytest.mark.parametrize("when", LEFT_TO_SPARK)
def test_what_is_not_sure_is_left_to_spark(when: str) -> None:
    assert find_flaw(when, SCHEMA) is None


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("\n", "is empty"),
        ("merchant = 'x", "line 1, column 12 of"),
        ("merchant = 'it's'", "line 1, column 17 of"),
        ('amount > 1 AND\n merchant = "x', "line 2, column 13 of"),
        ("`amount > 1", "begins with ` has no end"),
        ("(amount > 1", "line 1, column 1 of '(amount > 1': this ( is not closed"),
        ("amount > 1)", "this ) closes no (; take it away or open one"),
        ("array(1][0) = 1", "this ] closes no ["),
        ("amount > (1 + [2)", "this ) closes no ("),
        (
            "amnt > 1",
            "line 1, column 1 of 'amnt > 1': unknown column 'amnt' (did you mean 'amount'?); there are payment_id",
        ),
        ("amount > 1 AND\n  lower(merchnt) = 'x'", "line 2, column 9 of"),
        ("qqq IN (1, 2)", "unknown column 'qqq'; there are"),
        ("amount", "'amount' is of type double; a predicate is true or false"),
        ("(amount * 2)", "is a number"),
        ("'true'", "is a text"),
        ("7", "is a number"),
        ("(" * 101 + "true" + ")" * 101, "more than 100 brackets"),
        ("amount > 1" + " OR amount > 1" * 1000, "10,000 are allowed"),
    ],
)
def test_what_is_sure_is_told_with_its_place(when: str, said: str) -> None:
    flaw = find_flaw(when, SCHEMA)
    assert flaw
    assert said in flaw


def test_a_field_that_is_true_or_false_is_a_predicate() -> None:
    assert find_flaw("is_bad", PaymentSchema((Field("is_bad", "BOOLEAN", True),))) is None
