"""What real Spark says of predicates, and the words it is turned into."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import DoubleType

from drawn_rules import spark_functions
from fraud_filter.errors import UsageError
from fraud_filter.home import HOME
from fraud_filter.rules import functions as rule_functions
from fraud_filter.rules.check import check_rules, find_refused
from fraud_filter.rules.ruleset import Rule, RuleSet, load_rules
from fraud_filter.schema import load_schema
from fraud_filter.text.tables import markdown, write_between

SCHEMA = load_schema(HOME / "app/payment.ddl")
RECORD_BYTES = 2**20
DOCS = HOME / "docs/rules.md"


def _rules(*predicates: str) -> RuleSet:
    """A rule of each, `r7` in line 7 and so on."""
    return RuleSet(Path("rules.yml"), tuple(Rule(f"r{at}", at, when=when) for at, when in enumerate(predicates, 1)))


def test_the_shipped_rules_are_right(spark: Any) -> None:
    check_rules(spark, load_rules(HOME / "app/rules.yml", SCHEMA), SCHEMA, RECORD_BYTES)


TAKEN = (
    "amount > 100 AND country <> card_country",
    "hour(created_at) < 5",
    "merchant RLIKE '^x' OR lower(merchant) LIKE 'casino%'",
    "created_at > timestamp'2026-01-01 00:00:00'",
    "amount / 0 > 1",
    "exists(array(amount), x -> x > 10)",
    "currency IN ('EUR', 'USD')",
    "amount BETWEEN 1 AND 2 AND try_add(created_at, interval 1 day) > created_at",
    "lower(merchant) RLIKE '(casino|poker|bet)' OR left(merchant, 200) RLIKE '.*a.*b'",
    "regexp_replace(card_id, '[^0-9]', '') LIKE '4%1'",
    "split(merchant, ',', 5)[0] = 'x' AND get(array(1, 2), 7) IS NULL",
    "lpad(card_id, 20, '0') = repeat('0', 20)",
    "CASE WHEN amount > 3 THEN country ELSE card_country END = 'DE'",
    "CAST(amount AS DECIMAL(10, 2)) > 1.25 AND merchant > 5",
    "created_at > 'epoch' AND to_date(merchant, 'yyyy-MM-dd') > date'2026-01-01'",
)


def test_deterministic_predicates_of_one_payment_are_taken(spark: Any) -> None:
    assert find_refused(spark, _rules(*TAKEN), SCHEMA, RECORD_BYTES) == {}


#: What is refused, with the position that is named, and a part of the reason.
REFUSED = (
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
    # what reads or opens something else
    (
        "from_xml(merchant, 'a STRING', map('rowValidationXSDPath', 'http://127.0.0.1:1/x.xsd')) IS NULL",
        "line 1, column 1",
        "'from_xml' is not allowed in a rule: it reads what is no part of the record",
    ),
    ("input_file_name() = 'x'", "line 1, column 1", "no part of the record"),
    ("session_user = merchant", "line 1, column 1", "no part of the record"),
    # ways around names
    ("IDENTIFIER('max')(amount) > 1", "line 1, column 1", "write the function's name alone"),
    ("system.builtin.max(amount) > 1", "line 1, column 1", "write the function's name alone"),
    ("created_at > timestamp 'now'", "line 1, column 14", "write the time out"),
    ("created_at > timestamp '\\u006eow'", "line 1, column 14", "write the time out"),
    ("created_at > date 'today'", "line 1, column 14", "write the time out"),
    ("created_at > 'now'", "line 1, column 1", "depends on the time of evaluation"),
    ("to_date(concat('to', 'day')) = created_at", "line 1, column 1", "write the time out"),
    ("merchant = '${env:HOME}' AND amount > ${env:LEVEL}", "line 1, column 39", "Syntax error"),
    # what ends a query
    ("url_decode(merchant) = 'x'", "line 1, column 1", "ends the query"),
    ("str_to_map(merchant)['a'] = 'x'", "line 1, column 1", "ends the query"),
    ("to_number(merchant, '999') = 1", "line 1, column 1", "ends the query"),
    ("parse_json(merchant) IS NULL", "line 1, column 1", "ends the query"),
    ("element_at(array(1), 0) = 1", "line 1, column 1", "ends the query"),
    ("xpath_string(merchant, 'a') = 'x'", "line 1, column 1", "ends the query"),
    ("created_at + interval 1 day > created_at", "line 1, column 1", "the latest times make it end the query"),
    ("hour(date(merchant)) > 3", "line 1, column 1", "makes a timestamp of a date"),
    ("unix_timestamp(date(merchant)) > 3", "line 1, column 1", "makes a timestamp of a date"),
    ("to_date(merchant, card_id) IS NULL", "line 1, column 1", "takes the format from the record"),
    ("CAST(left(merchant, 20) AS DECIMAL(10, 2)) > 1", "line 1, column 1", "makes a DECIMAL of a text"),
    ("(amount > 1) <=> 0.5", "(amount > 1) <=> 0.5", "fails on a record"),
    ("merchant RLIKE card_id", "line 1, column 1", "takes the pattern from the record"),
    ("merchant RLIKE '(?<'", "line 1, column 1", "has the pattern '(?<'"),
    (
        "date_trunc('hour', from_utc_timestamp(created_at, merchant)) > created_at",
        "line 1, column 20",
        "not on the list",
    ),
    ("to_date(merchant, 'QQQQQQQ') IS NULL", "QQQQQQQ", "fails on a record"),
    # what fills the memory, or never ends
    ("repeat(merchant, 1000000) = ''", "line 1, column 1", "may make"),
    ("repeat(merchant, length(merchant)) = ''", "line 1, column 1", "takes how often from the record"),
    ("lpad(merchant, 2147483647, ' ') = ''", "line 1, column 1", "may make 2,147,483,647 characters"),
    ("size(sequence(1, 1000000000)) > 1", "line 1, column 6", "fill the memory"),
    ("replace(replace(merchant, 'a', 'aaaaaaaaaa'), 'a', 'aaaaaaaaaa') = ''", "line 1, column 1", "may make"),
    ("round(amount, 1000000000) > 1", "line 1, column 1", "more than 38 digits"),
    ("merchant RLIKE '(a+)+$'", "line 1, column 1", "a group repeats"),
    ("merchant RLIKE '.*a.*b'", "line 1, column 1", "steps"),
    ("merchant LIKE '%a%b%'", "line 1, column 1", "steps"),
    ("levenshtein(merchant, card_id) < 3", "line 1, column 1", "steps"),
    ("exists(split(merchant, '', 1000), x -> contains(merchant, x))", "line 1, column 40", "steps"),
    ("((((((((((" * 11 + "true" + "))))))))))" * 11, "", "more than 100 brackets"),
    ("amount > 1" + " OR amount > 1" * 1000, "", "characters"),
)


def test_what_can_not_run_in_every_mode_is_refused_with_rule_reason_and_position(spark: Any) -> None:
    rules = _rules(*(when for when, *_ in REFUSED))
    refused = find_refused(spark, rules, SCHEMA, RECORD_BYTES)
    for rule, (when, position, reason) in zip(rules.rules, REFUSED, strict=True):
        message = str(rules.refuse(rule, refused.get(rule, "not refused")))
        assert message.startswith(f"rules.yml, line {rule.line}, rule {rule.name!r}: "), when
        assert position in message, when
        assert reason in message, when


def test_the_documentation_has_the_list(spark: Any) -> None:
    """WRITE_DOCS=1 writes it: Spark's functions, by the reason for which a rule may use them."""
    names: dict[str, list[str]] = {}
    for name, kind in spark_functions(spark).items():
        if name.isidentifier():
            names.setdefault(rule_functions.BUILDERS.get(kind, kind), []).append(f"`{name}`")
    listed: dict[str, list[str]] = {}
    for reason, _, kinds in rule_functions.LISTED:
        listed.setdefault(reason, []).extend(name for kind in kinds.split() for name in names.get(kind, []))
    rows = [(reason, " ".join(sorted(functions))) for reason, functions in listed.items() if functions]
    table = markdown(("it …", "functions"), rows)
    if os.environ.get("WRITE_DOCS") == "1":
        write_between(DOCS, "rules", table)
    assert table in DOCS.read_text()


def test_all_refused_rules_are_named_at_once(spark: Any) -> None:
    rules = (
        Rule("one", 3, when="amnt > 1"),
        Rule("two", 5, when="amount > 1"),
        Rule("three", 8, when="amount > now()"),
    )
    with pytest.raises(UsageError) as refused:
        check_rules(spark, RuleSet(Path("rules.yml"), rules), SCHEMA, RECORD_BYTES)
    first, second = str(refused.value).splitlines()
    assert first.startswith("rules.yml, line 3, rule 'one': ")
    assert second.startswith("rules.yml, line 8, rule 'three': ")


def test_the_verb_names_what_spark_refuses_after_what_needs_no_spark(tmp_path: Path) -> None:
    file = tmp_path / "rules.yml"
    file.write_text(
        "rules:\n  - {name: a, when: amount > now()}\n  - {name: b, wen: x}\n  - {name: c, when: amount > 1}\n"
        "  - {name: d, when: nobody(amount) > 1}\n  - {name: b, blocked: {column: card_id, file: gone.txt}}\n"
    )
    argv = [sys.executable, "-m", "fraud_filter", "rules", "check", "--rules", str(file)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2, done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("fraud-filter: rules.yml, line ")]
    assert [line.partition("line ")[2][0] for line in told] == ["3", "6", "6", "2", "5"], done.stderr
    assert done.stdout == ""


def test_larger_records_may_take_more(spark: Any) -> None:
    when = " OR ".join(f"merchant LIKE '%a{at}'" for at in range(10))
    check_rules(spark, _rules(when), SCHEMA, 64 * RECORD_BYTES)


def test_a_registered_python_function_is_refused(spark: Any) -> None:
    spark.udf.register("suspicion", lambda amount: amount, DoubleType())
    with pytest.raises(UsageError, match="Python function would run once a record"):
        check_rules(spark, _rules("suspicion(amount) > 1"), SCHEMA, RECORD_BYTES)
