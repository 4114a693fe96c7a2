"""Which trials are run, in which order, and what the verb refuses."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fraud_filter.cli.main import cli
from fraud_filter.errors import UsageError
from fraud_filter.home import HOME
from lab.trials.at_random import draw
from lab.trials.catalogue import choose, on_stage
from lab.trials.plan import Trial, parse_ways, plan
from lab.trials.result import Outcome, read_outcomes

COMMON = Trial("", "micro-batch", "micro-batch")


def planned(
    names: list[str], *, tries: int = 1, standbys: tuple[bool, ...] = (True, False), **common: Any
) -> list[str]:
    trials = plan(names, [("real-time", "real-time")], standbys, tries, replace(COMMON, **common))
    return [str(trial) for trial in trials]


def test_all_twelve_ways_are_one_round_trip() -> None:
    ordered = parse_ways("all")
    assert len(set(ordered)) == len(ordered) == 12
    assert all(one[1] == other[0] for one, other in pairwise(ordered))


@pytest.mark.parametrize("text", ["continuous", "continuous:continuous", "continuous:slow", ":", ""])
def test_what_is_no_way_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="argument --ways"):
        parse_ways(text)


def test_kinds_take_turns_with_a_standby_and_then_without() -> None:
    assert planned(["kill", "hang"], tries=2) == [
        *["kill of real-time, with a standby", "hang of real-time, with a standby"] * 2,
        *["kill of real-time, without standby", "hang of real-time, without standby"] * 2,
    ]


def test_the_next_filter_is_the_standby_of_a_warm_change() -> None:
    assert planned(["rules"], standbys=(False, True)) == ["rules of real-time, with a standby"]


def test_changes_in_turn_keep_to_one_kind() -> None:
    assert planned(["handover", "rules"], tries=2, in_turn=True) == [
        *["handover of real-time, in turn"] * 2,
        *["rules of real-time, in turn"] * 2,
    ]


def test_a_switch_without_a_way_goes_to_and_fro() -> None:
    assert planned(["switch"], tries=3) == [
        "switch of real-time to micro-batch, with a standby",
        "switch of micro-batch to real-time, with a standby",
        "switch of real-time to micro-batch, with a standby",
    ]


def test_a_mode_is_left_by_a_kill_without_a_standby_which_would_be_in_that_mode() -> None:
    (trial,) = plan(["kill"], [("continuous", "real-time")], [True, False], 1, COMMON)
    assert str(trial) == "kill of continuous to real-time, without standby"


def test_those_are_chosen_that_work_on_the_stage_in_the_catalogues_order() -> None:
    assert choose("hang, kill", "embedded") == ["kill", "hang"]
    assert choose("all", "embedded") == ["kill", "java-kill", "hang", "freeze", "stop", "rules", "outage"]
    assert {"broker-kill", "disk-full"} <= set(choose("all", "stack"))
    assert choose("random", "stack") == ["random"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("broker-kill", "'broker-kill' is not accepted without --stack"),
        ("kill,", "'' is not accepted"),
        ("kill;hang", "'kill;hang' is not accepted"),
        ("freeze --stack", "'freeze' is not accepted with --stack: choose from kill, "),
        ("random,kill --stack", "'random' stands alone"),
        ("kill --stack --cards 5", "--cards goes with the embedded stage alone"),
        (f"kill --stack --rules {HOME}/app/lab/bench/velocity.yml", "--rules goes with the embedded stage alone"),
        (f"kill --stack --rules {HOME}/app/rules-velocity.yml", "only real-time mode has"),
        ("kill --modes continuous --ways all", "leave --modes away"),
        ("rules --ways all", "'rules' changes no mode"),
        ("disk-full --stack --standby with", "none of these is tried with a standby"),
        ("kill --stack --payment-schema own.ddl", "--payment-schema goes with the embedded"),
        ("kill --stack --query examples.enrich:transform", "a --query that names no file goes with the embedded"),
        (f"rules --query {HOME}/app/examples/enrich.py:transform", "does not go with rules; leave one"),
        (f"kill --query {HOME}/app/examples/totals.py:transform", "has no function expect in its module"),
        (f"kill --add --query {HOME}/app/examples/enrich.py:transform", "are for trials of the fraud filter"),
        (f"stop --ways all --rules {HOME}/app/rules-velocity.yml", "has features, whose state only real-time mode has"),
    ],
)
def test_what_cannot_be_tried_is_refused_before_anything_runs(tmp_path: Path, text: str, words: str) -> None:
    argv = ["lab", "trial", *text.split(), "--output", str(tmp_path / "trials.json")]
    done = CliRunner().invoke(cli, argv, standalone_mode=False)
    assert isinstance(done.exception, UsageError), done.exception
    assert words in str(done.exception)


def test_a_trial_tells_the_settings_that_are_not_the_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def run_nothing(_: object, trials: list[Trial], **__: object) -> list[Outcome]:
        return [Outcome(trial) for trial in trials]

    monkeypatch.setattr("lab.trials.run.run_trials", run_nothing)
    given = f"--rules {HOME}/app/rules-velocity.yml --emit all --hang-timeout-s 3 --modes real-time --standby with"
    argv = ["lab", "trial", "kill", *given.split(), "--output", str(tmp_path / "trials.json")]
    CliRunner().invoke(cli, argv, standalone_mode=False)
    (item,) = read_outcomes(tmp_path / "trials.json")
    assert item["given"] == "rules-velocity.yml, emit=all, hang_timeout_s=3.0"


@pytest.mark.parametrize("verb", ["takeover", "transitions", "faults", "soak", "backlog"])
def test_a_former_verb_names_the_present_one(verb: str) -> None:
    done = CliRunner().invoke(cli, [verb, "--help"], standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    (present,) = re.findall(r"is now `fraud-filter (lab trial .*)`", str(done.exception))
    names, stack = present.split()[2], "stack" if "--stack" in present else "embedded"
    assert choose(names, stack)  # type: ignore[arg-type]


def test_what_a_filter_finds_at_its_start_is_tried_on_the_stack_without_a_standby() -> None:
    trial = replace(COMMON, disturbance="offsets-corrupt", stage="stack")
    assert on_stage(trial)
    assert not on_stage(replace(trial, standby=True))


# -- at random: what comes when

NAMES = [f"disturbance-{number}" for number in range(12)]


@pytest.mark.parametrize("seed", range(20))
def test_an_hour_has_ten_and_more_none_of_them_left_out_by_chance(seed: int) -> None:
    due = draw(seed, 3600, NAMES)
    assert len(due) >= 10
    assert all(60 <= later.at_s - earlier.at_s <= 300.1 for earlier, later in pairwise(due))
    assert due[-1].at_s <= 3600
    assert len({each.name for each in due}) == min(len(due), len(NAMES))


def test_the_seed_says_all() -> None:
    assert draw(7, 3600, NAMES) == draw(7, 3600, NAMES)
    assert draw(7, 3600, NAMES) != draw(8, 3600, NAMES)


@pytest.mark.parametrize("minutes", [1, 3, 5])
def test_a_short_run_has_one_too(minutes: int) -> None:
    due = draw(1, minutes * 60, NAMES)
    assert due
    assert all(each.at_s < minutes * 60 for each in due)
