"""The bench's arguments, and the order of its rounds."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from lab.bench.contenders import CONTENDERS, TRANSACTIONS, available, parse_contenders
from lab.bench.look import LOOKS
from lab.bench.plan import Load, in_rounds, parse_rates


def test_every_contender_has_a_program_a_colour_and_a_marker_of_its_own() -> None:
    assert set(CONTENDERS) == set(LOOKS)
    colours, markers = zip(*LOOKS.values(), strict=True)
    assert len(set(colours)) == len(set(markers)) == len(CONTENDERS)
    assert all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in colours)


def test_each_round_begins_with_another_contender() -> None:
    expected = [(number, name) for number, names in enumerate(("abc", "bca", "cab", "abc"), 1) for name in names]
    assert list(in_rounds("abc", 4)) == expected


def test_the_lowest_rate_is_measured_longest() -> None:
    plan = Load(rates=(100, 1000), seconds=30)
    assert (plan.seconds_at(100), plan.seconds_at(1000)) == (30, 10)
    short = replace(plan, seconds=6)
    assert (short.seconds_at(100), short.seconds_at(1000)) == (6, 6)


def test_a_contender_runs_at_the_rates_that_it_is_meant_for() -> None:
    plan = Load(rates=(100, 1000, 5000), seconds=30).within(2000)
    assert (plan.rates, plan.warmup_rate, plan.seconds_at(100)) == ((100, 1000), 2000, 30)
    assert plan.within(math.inf) == plan


def test_rates_run_in_ascending_order() -> None:
    assert parse_rates("5000, 100,1000") == (100, 1000, 5000)


@pytest.mark.parametrize("text", ["", "0", "-1", "fast", "100,100", "nan", "inf", "2000000"])
def test_wrong_rates_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="argument --rates"):
        parse_rates(text)


def _names(texts: tuple[str, ...], slowest: float = 0, **settings: Any) -> list[str]:
    own = Settings.model_construct().model_copy(update=settings)
    return [one.name for one in available(parse_contenders(texts), slowest, 1, own)]


def test_contenders_are_taken_in_the_given_order() -> None:
    assert _names(("real-time, streams",)) == ["real-time", "streams"]


def test_without_names_all_run_that_can() -> None:
    assert set(_names(())) >= {
        "micro-batch",
        "async-progress",
        "continuous",
        "continuous-single",
        "real-time",
        "streams",
    }


@pytest.mark.parametrize(("name", "other"), [("rules", Path("own.yml")), ("emit", "all")])
def test_kafka_streams_takes_part_with_the_default_rules_alone(name: str, other: Any) -> None:
    assert "streams" in _names(())
    assert not {"streams", "streams-eos"} & {*_names((), **{name: other})}
    with pytest.raises(UsageError, match=f"'streams-eos' can't run here: it has the default {name} alone"):
        _names(("streams-eos",), **{name: other})


def test_a_contender_that_could_run_at_no_rate_does_not_run() -> None:
    assert "continuous-single" in _names((), slowest=1000)
    assert "continuous-single" not in _names((), slowest=1001)
    assert _names(("continuous-single",), slowest=1000) == ["continuous-single"]
    with pytest.raises(UsageError, match="'continuous-single' is for up to 1000 payments/s of each partition"):
        _names(("streams,continuous-single",), slowest=1001)


def test_contenders_may_have_other_settings() -> None:
    asked = 'real-time,real-time:linger_ms=5;partitions=4,micro-batch:spark_conf={"a": "1", "b": "2"}'
    plain, changed, other = parse_contenders((asked,))
    assert (plain.name, plain.label, plain.own) == ("real-time", "real-time", {})
    assert (changed.name, changed.own, changed.partitions) == (
        "real-time:linger_ms=5;partitions=4",
        {"linger_ms": 5},
        4,
    )
    assert re.fullmatch("[a-z0-9-]+", changed.label)
    assert changed.label != plain.label
    assert other.own == {"spark_conf": {"a": "1", "b": "2"}}


def test_other_engines_take_their_own_options() -> None:
    (slower,) = parse_contenders(("streams-eos:commit.interval.ms=1000;poll.ms=1",))
    guarantee = {"processing.guarantee": "exactly_once_v2"}
    assert slower.own == {**guarantee, "commit.interval.ms": "1000", "poll.ms": "1"}
    assert (slower.base, slower.delivery) == ("streams-eos", TRANSACTIONS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("flnk", "'flnk' is not a contender: choose from micro-batch"),
        ("streams,streams", "'streams' is given twice"),
        ("floor", "'floor' is gone: take streams"),
        ("streams:linger_ms=5", "'linger_ms=5' is not accepted: give OPTION=VALUE"),
        ("real-time:linger=5", "'linger=5' is not accepted: give SETTING=VALUE"),
        ("real-time:", "'' is not accepted"),
    ],
)
def test_what_is_no_contender_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=f"argument --contenders: {reason}"):
        parse_contenders((text,))


def test_shares_may_be_all_together() -> None:
    for flagged, malformed in ((0.9, 0.1), (0.7, 0.3), (1, 0)):
        assert Load(flagged_share=flagged, malformed_share=malformed).flagged_share == flagged
    with pytest.raises(UsageError, match=r"argument --fraud-share: 0.2 is not accepted: .* leaves 0.1"):
        Load(flagged_share=0.8, malformed_share=0.1, fraud_share=0.2)
