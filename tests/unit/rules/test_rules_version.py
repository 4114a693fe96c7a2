"""The version of the rules, and what makes two filters alike."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fraud_filter.config import Settings, load
from fraud_filter.errors import UsageError
from fraud_filter.query.filter_query import filter_query
from fraud_filter.query.query import fingerprint
from fraud_filter.rules.ruleset import load_rules
from fraud_filter.rules.version import DecisionRules, decision_rules_of, read_decision_rules
from fraud_filter.schema import load_schema

RULES = """rules:
  - name: large
    when: amount > 10
  - name: blocked
    blocked: {column: id, ids: [a, b]}
"""
FEATURES = (
    RULES
    + """features:
  - {name: spent, per: id, over: 1 minute, value: sum(amount)}
"""
)


def version(directory: Path, rules: str, schema: str = "id STRING NOT NULL, amount DOUBLE") -> str:
    return deciding(directory, rules, schema).version


def deciding(
    directory: Path, rules: str, schema: str = "id STRING NOT NULL, amount DOUBLE", **settings: object
) -> DecisionRules:
    (directory / "rules.yml").write_text(rules)
    (directory / "payment.ddl").write_text(schema)
    read = load_schema(directory / "payment.ddl")
    return decision_rules_of(load_rules(directory / "rules.yml", read), read, load({"mode": "real-time", **settings}))


def fingerprint_of(directory: Path, rules: str, settings: Settings) -> dict[str, str]:
    made = deciding(directory, rules)
    return fingerprint(filter_query(made.rules, made.schema, settings, None), settings)


def test_what_decides_makes_the_version(tmp_path: Path) -> None:
    first = version(tmp_path, RULES)
    assert len(first) == 12
    told = RULES.replace("when:", "description: more than ten\n    when:")
    assert version(tmp_path, "# a comment\n" + told) == first
    others = {
        version(tmp_path, RULES.replace("> 10", "> 11")),
        version(tmp_path, RULES.replace("large", "huge")),
        version(tmp_path, RULES.replace("[a, b]", "[a, b, c]")),
        version(tmp_path, RULES, "id STRING NOT NULL, amount INT"),
        version(tmp_path, RULES, "id STRING NOT NULL, amount DOUBLE NOT NULL"),
    }
    assert len(others | {first}) == 6
    assert deciding(tmp_path, RULES, max_record_bytes=100).version != first
    all_of_them = deciding(tmp_path, RULES, emit="all")
    assert all_of_them.version != first
    assert read_decision_rules(all_of_them.to_document(), "kept", load()).approves
    assert not read_decision_rules(deciding(tmp_path, RULES).to_document(), "kept", load()).approves
    assert deciding(tmp_path, RULES, velocity_payments=7).version == first  # there are no features
    assert deciding(tmp_path, FEATURES).version != deciding(tmp_path, FEATURES, velocity_payments=7).version


@pytest.mark.parametrize("has_prefix", [False, True])
@pytest.mark.parametrize("rules", [RULES, FEATURES], ids=["plain", "features"])
def test_what_is_written_down_is_the_same_when_it_is_read_again(tmp_path: Path, rules: str, has_prefix: bool) -> None:
    plain = deciding(tmp_path, rules)
    first = replace(plain, schema=replace(plain.schema, has_prefix=has_prefix))
    assert (first.version != plain.version) == has_prefix
    again = read_decision_rules(json.loads(json.dumps(first.to_document())), "kept", load())
    assert again.version == first.version
    assert again.schema == first.schema
    assert [(rule.name, rule.when, rule.column, rule.ids) for rule in again.rules.rules] == [
        (rule.name, rule.when, rule.column, rule.ids) for rule in first.rules.rules
    ]
    assert again.rules.columns(again.schema) == first.rules.columns(first.schema)


@pytest.mark.parametrize("document", [{}, [], None, {"schema": 1}, {"schema": [], "rules": [["a"]], "features": []}])
def test_what_is_no_set_of_rules_is_refused_by_name(document: object) -> None:
    with pytest.raises(UsageError, match="does not hold the rules of version 0123"):
        read_decision_rules(document, "0123", load())


@pytest.mark.parametrize(
    ("changes", "unlike"),
    [
        ({"metrics_port": 1, "ui_port": 4041, "starting_offsets": "latest"}, []),
        ({"mode": "real-time"}, ["mode"]),
        ({"linger_ms": 3, "spark_conf": {"spark.executor.memory": "2g"}}, ["linger_ms", "spark_conf"]),
        ({"emit": "all"}, ["emit", "rules"]),
    ],
)
def test_a_process_own_settings_do_not_count(tmp_path: Path, changes: dict[str, object], unlike: list[str]) -> None:
    settings = load({"mode": "continuous"})
    other: Settings = settings.model_copy(update=changes)
    one, two = fingerprint_of(tmp_path, RULES, settings), fingerprint_of(tmp_path, RULES, other)
    assert sorted(name for name in one if one[name] != two[name]) == unlike
    changed = fingerprint_of(tmp_path, RULES.replace("10", "20"), settings)
    assert [name for name in one if one[name] != changed[name]] == ["rules"]
