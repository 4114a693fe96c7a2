"""Features in the rules file: their form, and every refusal with its line and name."""

from __future__ import annotations

from pathlib import Path

import pytest

from fraud_filter.config import load
from fraud_filter.errors import UsageError
from fraud_filter.home import HOME
from fraud_filter.rules.ruleset import RuleSet, load_rules
from fraud_filter.schema import PaymentSchema, load_schema

SCHEMA = load_schema(HOME / "app/payment.ddl")
FEATURE = "{name: payments, per: card_id, over: 10 minutes, value: count}"


def _load(tmp_path: Path, feature: str, when: str = "amount > 1", schema: PaymentSchema = SCHEMA) -> RuleSet:
    file = tmp_path / "rules.yml"
    file.write_text(f'features:\n  - {feature}\nrules:\n  - {{name: rule, when: "{when}"}}\n')
    return load_rules(file, schema)


@pytest.mark.parametrize(
    ("value", "kind", "field", "type_", "total"),
    [
        ("count", "count", None, "INT", ""), ("first_seen", "first_seen", None, "DOUBLE", ""),
        ("sum(amount)", "sum", "amount", "DOUBLE", "DOUBLE"), ("max( amount )", "max", "amount", "DOUBLE", ""),
        ("count_distinct(card)", "count_distinct", "card", "INT", ""), ("sum(n)", "sum", "n", "BIGINT", "BIGINT"),
        ("sum(x)", "sum", "x", "DECIMAL(16, 2)", "DECIMAL(16, 2)"), ("max(n)", "max", "n", "INT", ""),
        ("avg(x)", "avg", "x", "DOUBLE", "DECIMAL(16, 2)"), ("min(x)", "min", "x", "DECIMAL(12, 2)", ""),
        ("sum(f)", "sum", "f", "DOUBLE", "DOUBLE"),
    ],
)  # fmt: skip
def test_a_feature(tmp_path: Path, value: str, kind: str, field: str | None, type_: str, total: str) -> None:
    (tmp_path / "payment.ddl").write_text("card STRING NOT NULL, amount DOUBLE, x DECIMAL(12, 2), n INT, f FLOAT")
    schema = load_schema(tmp_path / "payment.ddl")
    rules = _load(tmp_path, f"{{name: f_, per: card, over: 2 minutes, value: {value}}}", schema=schema)
    (feature,) = rules.features
    assert feature.described == ("f_", "card", 120_000, kind, field, type_, total, 0, "", 0)
    assert rules.columns(schema).fields[-1].type == type_


def test_a_feature_that_decays(tmp_path: Path) -> None:
    (feature,) = _load(tmp_path, "{name: f, per: card_id, decay: 2 minutes, value: sum(amount)}").features
    assert feature.described == ("f", "card_id", 1_200_000, "sum", "amount", "DOUBLE", "DOUBLE", 120_000, "", 0)


def test_a_window_that_is_too_long_for_a_half_life_is_refused(tmp_path: Path) -> None:
    short = "{name: short, per: card_id, decay: 1 minute, value: count}"
    _load(tmp_path, f"{{name: f, per: card_id, over: 300 minutes, value: count}}\n  - {short}")
    with pytest.raises(UsageError, match=r"line 3, feature 'short': decay: too short .* takes 60.2 seconds and more"):
        _load(tmp_path, f"{{name: f, per: card_id, over: 301 minutes, value: count}}\n  - {short}")


@pytest.mark.parametrize(
    ("feature", "said"),
    [
        ("{name: f, per: card_id, over: 10 minuts, value: count}", "over: expected a Spark interval"),
        ("{name: f, per: card_id, over: 10 milliseconds, value: count}", "over: it is between a second and"),
        ("{name: f, per: card, over: 1 hour, value: count}", r"per: unknown field 'card' \(did you mean 'card_id'"),
        (
            "{name: f, per: amount, over: 1 hour, value: count}",
            "per: it takes a field of type TINYINT.*'amount' is of type DOUBLE",
        ),
        ("{name: f, per: card_id, over: 1 hour, value: cont}", r"value: unknown value \(did you mean 'count'"),
        ("{name: f, per: card_id, over: 1 hour, value: sum}", "value: unknown value"),
        ("{name: f, per: card_id, over: 1 hour, value: sum(country)}", "value: sum takes a field of type .*STRING"),
        ("{name: f, per: card_id, over: 1 hour, value: count_distinct(amount)}", "count_distinct takes a field of"),
        ("{name: f, per: card_id, over: 1 hour}", "value: is missing"),
        ("{name: f, per: card_id, value: count}", "give either `over:` .* or `decay:`"),
        ("{name: f, per: card_id, decay: 1 hour, value: max(amount)}", "decay: max does not decay; count and sum do"),
        ("{name: f, per: card_id, decay: 900 hours, value: count}", "decay: a half-life is at most a month long"),
        ("{name: f, pr: card_id, over: 1 hour, value: count}", r"pr: unknown key \(did you mean 'per'"),
        ("{name: Amount, per: card_id, over: 1 hour, value: count}", "a record has a field 'amount'"),
        ("{name: rules, per: card_id, over: 1 hour, value: count}", "the name 'rules' is reserved"),
        ("{name: a-b, per: card_id, over: 1 hour, value: count}", "name: must begin with a letter"),
        ("{name: f, per: card_id, over: 1 hour, value: count, by: amount, late: 1 hour}", "by: it takes .* TIMESTAMP"),
        ("{name: f, per: card_id, over: 1 hour, value: count, by: created_at}", "`by:` .* and `late:` .* go together"),
        (
            "{name: f, per: card_id, over: 1 hour, value: count, by: created_at, late: 400 days}",
            "late: it is between a second and a year long",
        ),
        (
            "{name: f, per: card_id, decay: 1 hour, value: count, by: created_at, late: 1 hour}",
            "decay: goes by the append time alone",
        ),
    ],
)
def test_what_is_no_feature_is_refused_by_line_and_name(tmp_path: Path, feature: str, said: str) -> None:
    with pytest.raises(UsageError, match=rf"rules\.yml, line 2, feature '.*': .*{said}") as refused:
        _load(tmp_path, feature)
    assert "Traceback" not in str(refused.value)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("name: Payments, per: card_id", "the name is taken by the feature on line 2; give it another"),
        ("name: others, per: merchant", "per: 'merchant' is another key than 'card_id' on line 2"),
        ("name: others, per: card_id, by: created_at, late: 1 hour", "by: another time than on line 2; all have"),
    ],
)
def test_features_have_names_of_their_own_one_key_and_one_time(tmp_path: Path, other: str, said: str) -> None:
    feature = other.split(",")[0].removeprefix("name: ")
    with pytest.raises(UsageError, match=f"^rules.yml, line 3, feature '{feature}': {said}"):
        _load(tmp_path, f"{FEATURE}\n  - {{{other}, over: 1 hour, value: count}}")


def test_a_rule_is_not_blamed_for_a_feature_that_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        _load(tmp_path, "{name: payments, per: card_id, over: 1 hour, value: cont}", "payments > 3")
    assert len(str(refused.value).splitlines()) == 1


def test_an_unknown_name_is_told_with_the_features(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown column 'payment' .*there are .*created_at, payments"):
        _load(tmp_path, FEATURE, "payment > 3")


@pytest.mark.parametrize(
    ("when", "uses"),
    [
        ("payments > 3", True), ("PAYMENTS > 3", True), ("`payments` > 3", True), ("coalesce(payments, 0) > 3", True),
        ("merchant = 'payments'", False), ("payment_id = 'x'", False),
    ],
)  # fmt: skip
def test_which_rules_use_features(tmp_path: Path, when: str, uses: bool) -> None:
    rules = _load(tmp_path, FEATURE, when)
    assert rules.uses_features(rules.rules[0]) is uses
    assert bool(rules.without_features().rules) is not uses


def test_rules_with_features_are_skipped_only_where_they_can_t_run_and_that_is_set(tmp_path: Path) -> None:
    rules = _load(tmp_path, FEATURE, "payments > 3")
    skipped = load({"mode": "micro-batch", "features_unsupported": "skip"})
    assert rules.for_mode(load({"mode": "micro-batch"})) is rules
    assert rules.for_mode(load({"mode": "real-time", "features_unsupported": "skip"})) is rules
    assert not rules.for_mode(skipped).rules


def test_the_shipped_rules_with_velocity_hold_the_shipped_rules() -> None:
    alone, with_velocity = (load_rules(HOME / f"app/{name}.yml", SCHEMA) for name in ("rules", "rules-velocity"))
    shared = with_velocity.without_features().rules
    assert [(r.name, r.when, r.column, r.ids) for r in shared] == [
        (r.name, r.when, r.column, r.ids) for r in alone.rules
    ]
    assert len(with_velocity.rules) > len(shared)
