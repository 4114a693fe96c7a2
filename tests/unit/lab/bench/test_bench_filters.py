"""The other engines' filters: they take the shipped rules, decide as the oracle, and refuse what is not plain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from decider import Decider
from fraud_filter import config
from fraud_filter.errors import UsageError
from fraud_filter.generator.payments import MadePayments, Shares
from fraud_filter.generator.source import Steady
from fraud_filter.rules.ruleset import RuleSet, load_rules
from fraud_filter.schema import PaymentSchema, load_schema
from lab.bench.flink.sql import statement
from lab.bench.floor.plain_rules import plain_rules
from lab.bench.floor.python_filter import PythonFilter


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


def made(settings: config.Settings) -> list[tuple[bytes | None, bytes | None]]:
    """400 payments, half of them fraud, a tenth no payments at all."""
    shares = Shares(flagged=0.5, malformed=0.1)
    source = MadePayments.for_settings(settings, Steady(100), seed=7, shares=shares)
    batches = source.batches(1_790_000_000_000)
    return [pair for _ in range(2) for batch in [next(batches)] for pair in zip(batch.keys, batch.values, strict=True)]


def test_the_plain_filter_decides_as_the_oracle(settings: config.Settings, schema: PaymentSchema) -> None:
    rules = load_rules(settings.rules, schema)
    oracle, plain = Decider(schema, rules), PythonFilter(schema, rules, settings)
    payments = made(settings)
    kinds = set()
    for (key, value), decision in zip(payments, oracle.decide([value for _, value in payments]), strict=True):
        written = plain.decide(key, value)
        if decision.reason is not None:
            assert written == (key, value, decision.reason)
            kinds.add("rejected")
        elif not decision.rules:
            assert written is None
            kinds.add("passed")
        else:
            assert written is not None
            reading, named = oracle.reader.read_flagged(written.value or b"")
            assert (written.key, written.reason, reading.fields, named) == (key, "", decision.fields, decision.rules)
            kinds.add("flagged")
    assert kinds == {"rejected", "passed", "flagged"}


def test_a_record_above_the_limit_is_rejected_without_its_bytes(
    settings: config.Settings, schema: PaymentSchema
) -> None:
    small = settings.model_copy(update={"max_record_bytes": 10})
    plain = PythonFilter(schema, load_rules(settings.rules, schema), small)
    assert plain.decide(b"k", b"x" * 10) == (None, None, "too-large")


def test_unknown_is_no_match(settings: config.Settings, schema: PaymentSchema, tmp_path: Path) -> None:
    rules = rules_of(
        schema, tmp_path, "NOT (country <> card_country)", "card_country IS NULL", "amount BETWEEN 1 AND 2"
    )
    payment: dict[str, Any] = {
        "payment_id": "p",
        "card_id": "c",
        "amount": 1.5,
        "currency": "EUR",
        "country": "DE",
        "created_at": "2026-01-01T04:59:59.999Z",
    }
    written = PythonFilter(schema, rules, settings).decide(None, json.dumps(payment).encode())
    assert written is not None
    flagged = json.loads(written.value or b"")
    assert flagged["rules"] == ["r1", "r2"]
    assert flagged["created_at"] == "2026-01-01T04:59:59.999000Z"
    assert flagged["merchant"] is None


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
    with pytest.raises(UsageError, match="only the filter itself compares 'idle'"):
        plain_rules(load_rules(path, schema), schema)


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
