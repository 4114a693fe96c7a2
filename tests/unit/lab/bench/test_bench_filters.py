"""The other engines' filters: they have the rules and the schema that ship, written by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fraud_filter import config
from fraud_filter.config import Settings
from fraud_filter.rules.ruleset import RuleSet, load_rules
from fraud_filter.schema import PaymentSchema, load_schema
from lab.bench.contenders import VELOCITY_RULES
from lab.bench.flink.program import render
from lab.bench.streams import program as streams

VARIANT: dict[str, str | bool] = {"transactions": "", "is_parsed": False, "windows": False, "is_copy": False}


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    monkeypatch.chdir(tmp_path)  # no .env
    return config.load()


@pytest.fixture
def schema(settings: Settings) -> PaymentSchema:
    return load_schema(settings.payment_schema)


def spelt(text: str) -> str:
    """A predicate as both files write it."""
    return re.sub(r"\s+", " ", text).strip().lower()


def test_kafka_streams_has_the_rules_and_the_schema_that_ship(settings: Settings, schema: PaymentSchema) -> None:
    """What its rules decide, the audit of each start tells."""
    source = (Path(streams.__file__).parent / "Filter.java").read_text()
    rules = load_rules(settings.rules, schema)
    assert re.findall(r'rules\.add\("(.+)"\)', source) == [rule.name for rule in rules.rules]
    texts = re.search(r"TEXTS = Set\.of\((.+)\);", source)
    assert texts
    assert {*re.findall(r'"(\w+)"', texts[1]), "amount", "created_at"} == set(schema.required)


@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize("is_parsed", [False, True])
def test_flink_has_the_rules_and_the_schema_that_ship(
    settings: Settings, schema: PaymentSchema, *, windows: bool, is_parsed: bool
) -> None:
    text = render(settings, {0: 0}, "x", **{**VARIANT, "windows": windows, "is_parsed": is_parsed})
    rules: RuleSet = load_rules(VELOCITY_RULES if windows else settings.rules, schema)
    found = {name: spelt(when) for when, name in re.findall(r"CASE WHEN (.+) THEN '([\w-]+)' END,?\n", text)}
    assert list(found) == [rule.name for rule in rules.rules]
    for rule in rules.rules:
        ids = ", ".join(f"'{one}'" for one in sorted(rule.ids))
        assert found[rule.name] == spelt(rule.when or f"{rule.column} IN ({ids})")
        assert f"({found[rule.name]})" in spelt(text[text.rindex("WHERE") :])
    assert re.findall(r"KEY '(.+)' VALUE", text) == [*(field.name for field in schema.fields), "rules"]
    needed = re.findall(r"(\w+) IS NULL", text[text.rindex("WHERE") :])
    assert tuple(needed) == schema.required
    for feature in rules.features:
        assert f" AS {feature.name} FROM" in text


def test_flink_writes_in_transactions_where_it_is_told_to(settings: Settings) -> None:
    assert "'sink.delivery-guarantee' = 'at-least-once'" in render(settings, {0: 0}, "x", **VARIANT)
    exact = render(settings, {0: 0}, "x", **{**VARIANT, "transactions": "flink-eos's"})
    assert "'sink.delivery-guarantee' = 'exactly-once'" in exact
    assert "'sink.transactional-id-prefix' = 'flink-eos''s'" in exact


def test_flink_copies_each_record_with_its_place(settings: Settings) -> None:
    text = render(settings, {0: 0, 2: 7}, "x", **{**VARIANT, "is_copy": True})
    assert "'partition:0,offset:0;partition:2,offset:7'" in text
    assert text.split(";\n")[-1].startswith("INSERT INTO decisions SELECT `_key`, `_value`, 'payments.flagged', MAP[")
