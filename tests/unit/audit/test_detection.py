"""Precision and recall of the rules, by what they look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from fraud_filter.audit.result import Detection, Found, plain
from fraud_filter.home import HOME
from fraud_filter.rules.ruleset import RuleSet, load_rules
from fraud_filter.schema import load_schema

SCHEMA = load_schema(HOME / "app/payment.ddl")
RULES = """\
features:
  - {name: payments_1h, per: card_id, over: 1 hour, value: count}
rules:
  - {name: large, when: amount > 100}
  - {name: burst, when: payments_1h > 3}
  - {name: both, when: PAYMENTS_1H > 3 AND amount > 100}
"""


@pytest.fixture
def rules(tmp_path: Path) -> RuleSet:
    file = tmp_path / "rules.yml"
    file.write_text(RULES)
    return load_rules(file, SCHEMA)


def test_each_family_is_judged_by_the_payments_with_a_label(rules: RuleSet) -> None:
    detection = Detection(rules)
    for label, matched in (
        (b"bust-out", ["burst", "both"]),  # once for the family
        (b"bust-out", ["large"]),
        (b"card-testing", []),
        (b"card-testing", ["burst"]),
        (b"legitimate", ["burst"]),
        (b"legitimate", []),
    ):
        detection.see([("generated.at", b"1"), ("label", label)], matched)
    detection.see(None, ["large"])
    detection.see([("generated.at", b"1")], ["large"])
    result = detection.result()
    assert (result.labelled, result.fraud) == (6, 4)
    assert result.families == {"rules": Found(1.0, 0.25), "velocity": Found(0.6667, 0.5)}
    assert plain(result) == {
        "rules": {"precision": 1.0, "recall": 0.25},
        "velocity": {"precision": 0.6667, "recall": 0.5},
    }


def test_what_has_no_figure_is_none_and_not_zero(rules: RuleSet) -> None:
    detection = Detection(rules.without_features())
    assert detection.result().families == {"rules": Found(None, None)}
    detection.see([("label", b"legitimate")], ["large"])
    assert detection.result().families == {"rules": Found(0.0, None)}


def test_the_shipped_rules_with_velocity_hold_the_shipped_rules() -> None:
    plain_rules, with_velocity = (load_rules(HOME / f"app/{name}.yml", SCHEMA) for name in ("rules", "rules-velocity"))
    shared = with_velocity.without_features().rules
    assert [(r.name, r.when, r.column, r.ids) for r in shared] == [
        (r.name, r.when, r.column, r.ids) for r in plain_rules.rules
    ]
    assert len(with_velocity.rules) > len(shared)
