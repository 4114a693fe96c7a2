"""The bench's arguments, contenders with other settings, and the order of its rounds."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from lab.bench.changes import parse_change
from lab.bench.contenders import CONTENDERS, TRANSACTIONS, available, parse_contenders
from lab.bench.plan import Load, parse_rates
from lab.bench.plots import LOOKS
from lab.bench.result import RateResult, StartResult
from lab.bench.run import run_in_rounds
from lab.bench.summary import PAIRS


def test_every_contender_has_a_program_a_colour_and_a_marker_of_its_own() -> None:
    assert set(CONTENDERS) == set(LOOKS)
    colours, markers = zip(*LOOKS.values(), strict=True)
    assert len(set(colours)) == len(set(markers)) == len(CONTENDERS)
    assert all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in colours)
    assert {name for pair in PAIRS for name in pair} <= set(CONTENDERS)


def _started(name: str, number: int, stolen: float = 0) -> StartResult:
    return StartResult(name, number, (RateResult(100, stolen_share=stolen),))


def test_each_round_has_all_in_an_order_of_its_own_that_the_seed_gives() -> None:
    ran = run_in_rounds(_started, "abcdef", 4, seed=1, most_repeats=4)
    assert [one.round for one in ran] == sorted([1, 2, 3, 4] * 6)
    orders = {"".join(one.contender for one in ran if one.round == number) for number in (1, 2, 3, 4)}
    assert len(orders) > 1
    assert {"".join(sorted(order)) for order in orders} == {"abcdef"}
    assert run_in_rounds(_started, "abcdef", 4, seed=1, most_repeats=4) == ran
    assert run_in_rounds(_started, "abcdef", 4, seed=2, most_repeats=4) != ran
    assert [one.contender for one in run_in_rounds(_started, "fbc", 1, seed=1, most_repeats=1)] == ["f", "b", "c"]


def test_a_disturbed_start_has_its_whole_round_run_again_and_both_are_kept() -> None:
    ran = run_in_rounds(
        lambda name, number: _started(name, number, 0.06 if (name, number) == ("b", 2) else 0.05),
        "abc", 3, seed=1, most_repeats=3,
    )  # fmt: skip
    assert {one.round for one in ran} == {1, 2, 3, 4}
    assert {one.contender for one in ran if one.is_set_aside} == {"a", "b", "c"}
    assert {one.round for one in ran if one.is_set_aside} == {2}


def test_a_machine_that_is_always_disturbed_has_its_rounds_all_the_same() -> None:
    ran = run_in_rounds(lambda name, number: _started(name, number, 0.5), "ab", 2, seed=1, most_repeats=1)
    assert [one.is_set_aside for one in ran] == [True, True, False, False, False, False]


def test_the_lowest_rate_is_measured_longest() -> None:
    plan = Load(rates=(100, 1000), seconds=30)
    assert (plan.seconds_at(100), plan.seconds_at(1000)) == (30, 10)
    short = replace(plan, seconds=6)
    assert (short.seconds_at(100), short.seconds_at(1000)) == (6, 6)


def test_rates_run_in_ascending_order() -> None:
    assert parse_rates("5000, 100,1000") == (100, 1000, 5000)


@pytest.mark.parametrize("text", ["", "0", "-1", "fast", "100,100", "nan", "inf", "2000000"])
def test_wrong_rates_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="argument --rates"):
        parse_rates(text)


def _names(texts: tuple[str, ...], **settings: Any) -> list[str]:
    own = Settings.model_construct().model_copy(update=settings)
    return [one.name for one in available(parse_contenders(texts), own)]


def test_a_query_of_the_user_s_is_for_the_modes_and_what_copies_records() -> None:
    assert _names((), query="mine.py:transform") == ["micro-batch", "async-progress", "continuous", "real-time"]
    assert _names(("copy",), query="mine.py:transform") == ["copy"]
    with pytest.raises(UsageError, match="'velocity' can't run here: it decides by rules"):
        _names(("velocity",), query="mine.py:transform")
    assert _names(("spark",), query="mine.py:transform") == ["spark"]
    with pytest.raises(UsageError, match="'spark' can't run here: it runs a query of yours: name one with --query"):
        _names(("spark",))


def test_contenders_are_taken_in_the_given_order() -> None:
    assert _names(("real-time, streams",)) == ["real-time", "streams"]


def test_without_names_all_run_that_can() -> None:
    assert set(_names(())) >= {"micro-batch", "async-progress", "continuous", "real-time", "streams"}


@pytest.mark.parametrize(("name", "other"), [("rules", Path("own.yml")), ("emit", "all")])
def test_kafka_streams_takes_part_with_the_default_rules_alone(name: str, other: Any) -> None:
    assert "streams" in _names(())
    assert not {"streams", "streams-eos"} & {*_names((), **{name: other})}
    with pytest.raises(UsageError, match=f"'streams-eos' can't run here: it has the default {name} alone"):
        _names(("streams-eos",), **{name: other})


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
    assert (slower.name.partition(":")[0], slower.delivery) == ("streams-eos", TRANSACTIONS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("flnk", "'flnk' is not a contender: choose from micro-batch"),
        ("streams,streams", "'streams' is given twice"),
        ("streams:linger_ms=5", "'linger_ms=5' is not accepted: give OPTION=VALUE"),
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


# -- changes of settings in a contender's name


def test_generator_and_audit_get_what_decides() -> None:
    change = parse_change("max_record_bytes=2000;linger_ms=5")
    assert (change.decided, change.others) == ({"max_record_bytes": 2000}, {"linger_ms": 5})


def test_a_place_for_checkpoints_does_not_depend_on_where_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "disk").mkdir()
    monkeypatch.chdir(tmp_path)
    assert parse_change("linger_ms=5").checkpoints is None
    assert parse_change("checkpoint=disk").checkpoints == tmp_path / "disk"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("linger=5", "'linger=5' is not accepted: give SETTING=VALUE"),
        ("linger_ms", "'linger_ms' is not accepted"),
        ("", "'' is not accepted"),
        ("partitions=0", "'partitions=0' is not accepted: give a whole number from 1 to 64"),
        ("partitions=two", "'partitions=two' is not accepted"),
        ("linger_ms=-1", r"setting linger_ms .*'-1' is not accepted"),
        ("linger_ms=5;mode=real-time", "'mode=real-time' is not accepted: the bench sets mode itself"),
        ("checkpoint=no/such", "'checkpoint=no/such' is not accepted: give a directory that exists"),
    ],
)
def test_what_is_no_change_is_refused_in_words(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_change(text)
