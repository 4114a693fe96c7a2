"""The audit of features against the real broker: right ones pass, wrong ones are found, and some no one can tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fraud_filter.audit.gaps import Recorded
from fraud_filter.audit.result import AuditResult, FeatureCounts, Finding
from fraud_filter.audit.run import audit
from fraud_filter.checkpoint.notes import VersionStart
from fraud_filter.rules.features import Feature
from fraud_filter.rules.ruleset import Rule, RuleSet
from fraud_filter.rules.version import DecisionRules
from fraud_filter.schema import Field, PaymentSchema
from outputs import Outputs, Placed
from running import GOOD

RULES = """\
features:
  - {name: payments_1h, per: card_id, over: 1 hour, value: count}
  - {name: spent_1h, per: card_id, over: 1 hour, value: sum(amount)}
rules:
  - {name: burst, when: payments_1h >= 2}
"""


def _payment(card: str, amount: float) -> bytes:
    return json.dumps({**GOOD, "card_id": card, "amount": amount}).encode()


class Scene:
    """Two payments of a card, of which the second is flagged, and one of another card on the other partition."""

    def __init__(self, outputs: Outputs) -> None:
        self.outputs = outputs
        self.first, self.second = outputs.pay(_payment("c1", 10), _payment("c1", 5))
        outputs.pay(_payment("c2", 10), partition=1)
        self.rules = outputs.stage.directory / "rules.yml"
        self.rules.write_text(RULES)

    def flag(self, payment: Placed, count: int, spent: float) -> None:
        self.outputs.flag([payment], ["burst"], changes={"payments_1h": count, "spent_1h": spent})

    def audit(self, **arguments: Any) -> AuditResult:
        return audit(self.outputs.stage.settings().model_copy(update={"rules": self.rules}), **arguments)


@pytest.fixture
def scene(outputs: Outputs) -> Scene:
    return Scene(outputs)


def test_right_features_pass_also_in_a_copy(scene: Scene) -> None:
    scene.flag(scene.second, 2, 15.0)
    scene.flag(scene.second, 2, 15.0)
    result = scene.audit()
    assert result.ok
    assert (result.expected, result.duplicated) == (1, 1)
    assert result.features == FeatureCounts(decisions=2, differing=0, untold=0, truncated=0)


def test_windows_reach_back_to_before_what_is_audited(scene: Scene) -> None:
    scene.flag(scene.second, 2, 15.0)
    result = scene.audit(start={0: scene.second.offset})
    assert result.ok
    assert (result.payments, result.expected) == (2, 1)
    assert result.features == FeatureCounts(decisions=1, differing=0, untold=0, truncated=0)


def test_a_key_on_two_partitions_is_judged_by_nobody(scene: Scene) -> None:
    scene.outputs.pay(_payment("c1", 1), partition=1)
    scene.flag(scene.second, 7, 70.0)
    result = scene.audit()
    assert result.ok
    assert result.features == FeatureCounts(decisions=0, differing=0, untold=3, truncated=0)


def test_a_payment_that_cannot_be_judged_is_one_finding_and_the_others_are_audited(scene: Scene) -> None:
    """By rules that a filter has kept, whose feature is of another type than it says."""
    right, wrong = scene.outputs.pay(_payment("c3", 20), _payment("c3", 20)[:-1] + b', "note": "x"}')
    schema = PaymentSchema(
        (Field("card_id", "STRING", True), Field("amount", "DECIMAL(38, 0)", True), Field("note", "STRING", False))
    )
    spent = Feature("spent_1h", "card_id", 3_600_000, "sum", "amount", "DECIMAL(38, 0)", "DECIMAL(38, 0)")
    most = Feature("most_1h", "card_id", 3_600_000, "max", "note", "INT")
    rule = Rule("burst", 2, when="spent_1h > 12 OR most_1h > 1")
    kept = DecisionRules(schema, RuleSet(Path("kept"), (rule,), (spent, most)), 100, 65_536)
    began = VersionStart(kept.version, "", {0: 0, 1: 0}, 0.0)
    scene.outputs.flag([right, wrong], ["burst"], changes={"spent_1h": 20})
    result = scene.audit(recorded=Recorded([], {}, {}, [began], {kept.version: kept}))
    assert not result.ok
    assert (result.payments, result.expected, result.unjudged) == (5, 2, 1)
    assert (result.lost, result.duplicated, result.unexpected) == (1, 0, 0)
    [found] = result.examples["unjudged"]
    assert found == Finding(wrong.partition, wrong.offset, found.reason)
    assert "'x'" in found.reason
    assert [finding.offset for finding in result.examples["lost"]] == [scene.second.offset]
