"""What is checked before a start: features that a mode runs, their task slots, and where a query begins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fraud_filter.config import Settings, load
from fraud_filter.config.kinds import ModeName
from fraud_filter.errors import UsageError
from fraud_filter.modes import MODES
from fraud_filter.query.filter_query import FilterQuery, filter_query
from fraud_filter.query.preflight import Inputs, check_inputs, complete, lacks_slots, require_there
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


# -- where a query without a checkpoint begins: words, offsets of all partitions, and what is refused


@pytest.mark.parametrize("word", ["earliest", "latest"])
def test_a_word_is_taken_as_it_is(word: str) -> None:
    assert complete(load({"starting_offsets": word}), 2).starting_offsets == word


def test_partitions_that_are_not_named_begin_at_the_earliest() -> None:
    settings = load({"starting_offsets": '{"payments": {"1": 5}}'})
    assert json.loads(complete(settings, 3).starting_offsets) == {"payments": {"0": -2, "1": 5, "2": -2}}


def test_another_source_has_no_partitions_to_begin_at() -> None:
    settings = load({"starting_offsets": '{"payments": {"7": 5}}', "source": "rate"})
    assert complete(settings, 0) == settings


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"payments": {"2": 5}}', "partitions that 'payments' has not: 2; it has 0 to 1"),
        ('{"payments": {"-1": 5}}', "has not: -1"),
        ('{"other": {"0": 1}}', "is not accepted; give earliest, latest, or JSON such as"),
        ('{"payments": {"0": 1, "1": 1}, "other": {"0": 1}}', "is not accepted"),
        ('{"payments": {"0": -3}}', "is not accepted"),
        ('{"payments": {"0": "1"}}', "is not accepted"),
        ('{"payments": [1, 2]}', "is not accepted"),
        ("[]", "is not accepted"),
        ("{}", "is not accepted"),
        ("yesterday", "is not accepted"),
    ],
)
def test_what_names_no_offsets_of_the_topic_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=r"setting starting_offsets \(--starting-offsets") as refused:
        complete(load({"starting_offsets": text}), 2)
    assert reason in str(refused.value)


def test_offsets_that_the_topic_does_not_have_are_refused() -> None:
    settings = load({"starting_offsets": '{"payments": {"0": 9, "1": 2}}'})
    bounds = {0: (0, 8), 1: (3, 5)}
    require_there(settings, {0: 8, 1: 3}, bounds)
    with pytest.raises(
        UsageError, match=r"partition 0 has offsets 0 to 8, not 9; partition 1 has offsets 3 to 5, not 2"
    ):
        require_there(settings, {0: 9, 1: 2}, bounds)


def test_a_word_is_always_there() -> None:
    """The topic's end was read after its bounds, and payments came in between."""
    require_there(load({"starting_offsets": "latest"}), {0: 9, 1: 6}, {0: (0, 8), 1: (3, 5)})
