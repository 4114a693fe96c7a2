"""The other engines' filters: they have the shipped rules, and refuse what they would decide otherwise."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fraud_filter import config
from fraud_filter.errors import UsageError
from fraud_filter.rules.ruleset import RuleSet, load_rules
from fraud_filter.schema import PaymentSchema, load_schema
from lab.bench.flink.plain_rules import plain_rules
from lab.bench.flink.sql import statement, tables
from lab.bench.streams import program as streams


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> config.Settings:
    monkeypatch.chdir(tmp_path)  # no .env
    return config.load()


@pytest.fixture
def schema(settings: config.Settings) -> PaymentSchema:
    return load_schema(settings.payment_schema)


def rules_of(schema: PaymentSchema, directory: Path, *predicates: str) -> RuleSet:
    path = directory / "rules.yml"
    path.write_text(json.dumps({"rules": [{"name": f"r{at}", "when": when} for at, when in enumerate(predicates)]}))
    return load_rules(path, schema)


def test_kafka_streams_has_the_rules_and_the_schema_that_ship(settings: config.Settings, schema: PaymentSchema) -> None:
    """What its rules decide, the audit of each start tells."""
    source = (Path(streams.__file__).parent / "Filter.java").read_text()
    rules = load_rules(settings.rules, schema)
    assert re.findall(r'rules\.add\("(.+)"\)', source) == [rule.name for rule in rules.rules]
    texts = re.search(r"TEXTS = Set\.of\((.+)\);", source)
    assert texts
    assert {*re.findall(r'"(\w+)"', texts[1]), "amount", "created_at"} == set(schema.required)


@pytest.mark.parametrize(
    ("predicate", "named"),
    [
        ("amount / 2 > 3", "amount / 2"),
        ("upper(merchant) = 'X'", "UPPER"),
        ("created_at > '2026-01-01'", "created_at"),
        ("merchant LIKE 'a%'", "LIKE"),
    ],
)
def test_rules_that_are_not_plain_are_refused(
    schema: PaymentSchema, tmp_path: Path, predicate: str, named: str
) -> None:
    with pytest.raises(UsageError, match=r"rules\.yml, line \d+, rule 'r0': only the filter itself") as caught:
        plain_rules(rules_of(schema, tmp_path, predicate), schema)
    assert named in str(caught.value)


def test_features_that_only_the_filter_knows_are_refused(
    settings: config.Settings, schema: PaymentSchema, tmp_path: Path
) -> None:
    path = tmp_path / "rules.yml"
    path.write_text(
        "features: [{name: idle, per: card_id, over: 1 hour, value: seconds_since_last}]\n"
        "rules: [{name: often, when: idle < 1}]\n"
    )
    with pytest.raises(UsageError, match="can't take the feature 'idle': seconds_since_last"):
        statement(schema, load_rules(path, schema), settings, "x")


def test_quotation_marks_cannot_leave_their_literal(
    settings: config.Settings, schema: PaymentSchema, tmp_path: Path
) -> None:
    text = statement(schema, rules_of(schema, tmp_path, 'merchant = "it\'s"'), settings, "x")
    assert "`merchant` = 'it''s'" in text


def test_flink_refuses_fields_that_it_may_read_otherwise(settings: config.Settings, tmp_path: Path) -> None:
    path = tmp_path / "payment.ddl"
    path.write_text("payment_id STRING NOT NULL, amount DECIMAL(10, 2) NOT NULL")
    other = load_schema(path)
    with pytest.raises(UsageError, match="can't take the field 'amount' of type DECIMAL"):
        statement(other, rules_of(other, tmp_path, "payment_id = 'x'"), settings, "x")


def test_flink_writes_in_transactions_where_it_is_told_to(settings: config.Settings) -> None:
    _, plain = tables(settings, {0: 0})
    assert "'sink.delivery-guarantee' = 'at-least-once'" in plain
    _, exact = tables(settings, {0: 0}, transactions="flink-eos-1")
    assert "'sink.delivery-guarantee' = 'exactly-once'" in exact
    assert "'sink.transactional-id-prefix' = 'flink-eos-1'" in exact
