"""Which modes take rules with features, and how many task slots these need."""

from __future__ import annotations

from pathlib import Path

import pytest

from fraud_filter.config import Settings, load
from fraud_filter.config.kinds import ModeName
from fraud_filter.errors import UsageError
from fraud_filter.modes import MODES
from fraud_filter.query.filter_query import FilterQuery, filter_query
from fraud_filter.query.preflight import Inputs, check_inputs, lacks_slots
from fraud_filter.rules.ruleset import RuleSet
from fraud_filter.schema import PaymentSchema

RULES = """\
features:
  - {name: payments_10m, per: card_id, over: 10 minutes, value: count}
rules:
  - {name: burst, when: payments_10m > 5}
"""
SINGLE = "  - {name: large, when: amount >= 5000}\n"


def _settings(directory: Path, text: str, **changes: object) -> Settings:
    (directory / "rules.yml").write_text(text)
    own = {"rules": directory / "rules.yml", "checkpoint": str(directory / "checkpoint"), "source": "rate"}
    return load({**own, "sink": "memory", **changes})


@pytest.mark.parametrize("mode", [name for name, mode in MODES.items() if mode.lacks_features])
def test_a_mode_without_features_refuses_them_by_name(tmp_path: Path, mode: ModeName) -> None:
    sink = "kafka" if mode == "async-progress" else "memory"
    with pytest.raises(UsageError) as refused:
        check_inputs(_settings(tmp_path, RULES + SINGLE, mode=mode, sink=sink))
    told = str(refused.value)
    assert told.startswith(f"setting mode (--mode, FRAUD_MODE): {mode!r} can't compute the features of ")
    assert "payments_10m" in told
    assert "set mode to real-time, or features_unsupported to skip" in told


def test_rules_with_features_are_skipped_where_that_is_set(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    inputs = check_inputs(_settings(tmp_path, RULES + SINGLE, mode="micro-batch", features_unsupported="skip"))
    assert isinstance(inputs.query, FilterQuery)
    assert [rule.name for rule in inputs.query.deciding.rules.rules] == ["large"]
    assert inputs.query.features == ()
    assert inputs.state_partitions == 0
    assert "'mode': 'micro-batch', 'rules': 'burst'" in caplog.text


def test_nothing_left_is_refused_also_where_rules_may_be_skipped(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"can't compute the features of .*; set mode to real-time$"):
        check_inputs(_settings(tmp_path, RULES, mode="micro-batch", features_unsupported="skip"))


def test_the_state_takes_task_slots_beside_the_input() -> None:
    query = filter_query(RuleSet(Path("rules.yml"), ()), PaymentSchema(()), load({}), None)
    inputs = Inputs(MODES["real-time"], query, 2, state_partitions=3)
    assert inputs.slots == 5
    assert lacks_slots(inputs, 4)
    assert not lacks_slots(inputs, 5)
