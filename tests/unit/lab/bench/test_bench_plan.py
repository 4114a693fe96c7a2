"""The bench's arguments, and the order of its rounds."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner

from fraud_filter.errors import UsageError
from fraud_filter.pages.palette import COLOURS, MARKERS
from lab.bench.contenders import REGISTRY, available
from lab.bench.names import CONTENDERS, RATIOS, parse_names
from lab.bench.plan import BenchPlan, in_rounds, parse_rates
from lab.cli.bench import command


def test_every_contender_has_a_program_a_colour_and_a_marker_of_its_own() -> None:
    assert list(CONTENDERS) == list(REGISTRY)
    assert set(CONTENDERS) == set(COLOURS) == set(MARKERS)
    assert len(set(COLOURS.values())) == len(set(MARKERS.values())) == len(CONTENDERS)
    assert all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in COLOURS.values())
    assert {name for pair in RATIOS for name in pair} <= set(CONTENDERS)


def test_each_round_begins_with_another_contender() -> None:
    expected = [(number, name) for number, names in enumerate(("abc", "bca", "cab", "abc"), 1) for name in names]
    assert list(in_rounds("abc", 4)) == expected


def test_the_lowest_rate_is_measured_longest() -> None:
    plan = BenchPlan(contenders=("floor",), rates=(100, 1000), seconds=30)
    assert (plan.seconds_at(100), plan.seconds_at(1000)) == (30, 10)
    short = replace(plan, seconds=6)
    assert (short.seconds_at(100), short.seconds_at(1000)) == (6, 6)


def test_a_contender_runs_at_the_rates_that_it_is_meant_for() -> None:
    plan = BenchPlan(contenders=("floor",), rates=(100, 1000, 5000), seconds=30).within(2000)
    assert (plan.rates, plan.warmup_rate, plan.seconds_at(100)) == ((100, 1000), 2000, 30)
    assert plan.within(math.inf) == plan


def test_rates_run_in_ascending_order() -> None:
    assert parse_rates("5000, 100,1000") == (100, 1000, 5000)


@pytest.mark.parametrize("text", ["", "0", "-1", "fast", "100,100", "nan", "inf", "2000000"])
def test_wrong_rates_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="argument --rates"):
        parse_rates(text)


def test_contenders_are_taken_in_the_given_order() -> None:
    named = parse_names("real-time, floor", CONTENDERS, "--contenders", "a contender")
    assert available(named) == ("real-time", "floor")


def test_without_names_all_run_that_can() -> None:
    assert set(available(())) >= {
        "micro-batch",
        "async-progress",
        "continuous",
        "continuous-single",
        "real-time",
        "floor",
    }


def test_a_contender_that_could_run_at_no_rate_does_not_run() -> None:
    assert "continuous-single" in available((), slowest=1000)
    assert "continuous-single" not in available((), slowest=1001)
    assert available(("continuous-single",), slowest=1000) == ("continuous-single",)
    with pytest.raises(UsageError, match="'continuous-single' is for up to 1000 payments/s of each partition"):
        available(("floor", "continuous-single"), slowest=1001)


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"seconds": 0}, "--seconds"),
        ({"warmup_s": -1}, "--warmup"),
        ({"settle_s": float("nan")}, "--settle"),
        ({"warmup_rate": 0}, "--warmup-rate"),
        ({"rounds": 0}, "--rounds"),
        ({"repeats": -1}, "--repeats"),
        ({"repeats": 11}, "--repeats"),
        ({"partitions": 65}, "--partitions"),
        ({"seed": -1}, "--seed"),
        ({"flagged_share": 0}, "--flagged-share"),
        ({"flagged_share": 1.1}, "--flagged-share"),
        ({"malformed_share": 0.6}, "--malformed-share"),
        ({"malformed_share": -0.1}, "--malformed-share"),
    ],
)
def test_wrong_numbers_are_refused_with_argument_and_value(changes: dict[str, float], argument: str) -> None:
    (value,) = changes.values()
    with pytest.raises(UsageError, match=f"argument {argument}: {value:g} is not accepted: give "):
        BenchPlan(contenders=("floor",), **changes)  # type: ignore[arg-type]


def test_shares_may_be_all_together() -> None:
    for flagged, malformed in ((0.9, 0.1), (0.7, 0.3), (1, 0)):
        assert BenchPlan(("floor",), flagged_share=flagged, malformed_share=malformed).flagged_share == flagged


def test_what_is_too_short_for_percentiles_is_refused() -> None:
    done = CliRunner().invoke(command, ["--seconds", "2.9"], standalone_mode=False)
    assert str(done.exception) == "argument --seconds: 2.9 is not accepted: give 3 or more"
