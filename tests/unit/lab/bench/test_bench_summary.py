"""Figures over rounds, their intervals, and ratios: computed by hand from a few numbers."""

from __future__ import annotations

from dataclasses import replace

from bench_sample import CHANGED, sample_rate
from lab.bench.result import RateResult, StartResult
from lab.bench.summary import compare, summarise_rounds
from lab.bench.table import describe_start, markdown_kills
from lab.harness.outcome import Audited


def start(name: str, number: int, p50_ms: float, p99_ms: float | None = None, **changes: object) -> StartResult:
    latency = {"p50_ms": p50_ms, "p99_ms": 10 * p50_ms if p99_ms is None else p99_ms}
    return StartResult(name, number, (sample_rate(name, 100, number, due=latency, **changes),), 10.0 + number)


ROUNDS = [
    start("real-time", 1, 3.0, cpu_s={"contender": 2.0}),
    start("real-time", 2, 2.0, cpu_s={"contender": 6.0}, audit=Audited(2, 0, 0)),
    start("real-time", 3, 2.5, cpu_s={"contender": 4.0}, audit=Audited(1, 0, 0)),
    start("streams", 1, 2.0),
    start("streams", 2, 2.0),
    start("streams", 3, 1.0),
]


def test_a_result_is_the_mean_of_its_rounds_with_the_interval_of_their_scatter() -> None:
    result = summarise_rounds(ROUNDS)[0]
    assert (result["mode"], result["rate"], result["rounds"]) == ("real-time", 100, 3)
    assert (result["due_p50_ms"], result["due_p99_ms"]) == (2.466, 24.66)  # the third root of 3 * 2 * 2.5
    low, high = result["intervals"]["due_p50_ms"]
    assert low < 2 < 3 < high
    assert result["cpu_s_per_1000"] == 1.817  # 2, 6 and 4 s for 2,000 payments
    assert result["lost"] == 3
    assert result["first_decision_s"] == 12.0


def test_less_than_three_rounds_have_no_interval() -> None:
    result = summarise_rounds(ROUNDS[:2])[0]
    assert (result["due_p50_ms"], result["intervals"]["due_p50_ms"]) == (2.449, None)
    assert compare([*ROUNDS[:2], *ROUNDS[3:5]])[0]["due_p50_ms"] == {
        "ratio": 1.225, "low": None, "high": None, "verdict": "not told apart",
    }  # fmt: skip


def test_a_ratio_is_the_mean_of_the_rounds_own_ratios() -> None:
    (pair,) = compare(ROUNDS)
    assert [pair[name] for name in ("first", "second", "rate", "rounds")] == ["real-time", "streams", 100, 3]
    assert pair["due_p50_ms"]["ratio"] == 1.554  # of 1.5, 1 and 2.5
    assert pair["due_p50_ms"]["verdict"] == "not told apart"
    assert pair["due_p50_ms"]["low"] < 1 < 2.5 < pair["due_p50_ms"]["high"]


def test_rounds_that_agree_tell_contenders_apart() -> None:
    slow = [start("micro-batch", number, 100.0 + number, cpu_s={"contender": 0.1}) for number in (1, 2, 3)]
    (pair, *_) = compare([*ROUNDS, *slow])
    assert (pair["first"], pair["second"]) == ("real-time", "micro-batch")
    assert [pair[name]["verdict"] for name in ("due_p50_ms", "due_p99_ms", "cpu_s_per_1000")] == [
        "faster",
        "faster",
        "more",
    ]


def test_a_contender_with_another_setting_is_set_against_the_one_that_it_changes() -> None:
    changed = [start(CHANGED, number, 6.0, cpu_s={"contender": 8.0}) for number in (1, 2, 3)]
    found = compare([*ROUNDS, *changed])
    assert [(one["first"], one["second"]) for one in found] == [(CHANGED, "real-time"), ("real-time", "streams")]
    assert found[0]["due_p50_ms"]["ratio"] == 2.433


def test_each_rate_that_both_had_is_compared() -> None:
    several = [
        StartResult(name, 1, tuple(sample_rate(name, rate, 1) for rate in rates))
        for name, rates in (("real-time", (100, 1000, 5000)), ("streams", (100, 1000)))
    ]
    assert [one["rate"] for one in compare(several)] == [100, 1000]


def test_results_are_in_the_order_of_the_contenders_whatever_ran_first() -> None:
    ran = [start(name, 1, 2.0) for name in ("streams", CHANGED, "micro-batch", "real-time")]
    assert [one["mode"] for one in summarise_rounds(ran)] == ["micro-batch", "real-time", CHANGED, "streams"]


def test_a_round_that_was_set_aside_makes_no_result() -> None:
    aside = [replace(start(name, 4, 900.0), is_set_aside=True) for name in ("real-time", "streams")]
    assert summarise_rounds([*ROUNDS, *aside]) == summarise_rounds(ROUNDS)
    assert compare([*ROUNDS, *aside]) == compare(ROUNDS)


def test_a_round_without_the_other_contender_is_left_out_of_the_ratio() -> None:
    assert compare([*ROUNDS[:3], ROUNDS[3]])[0]["due_p50_ms"]["ratio"] == 1.5
    assert compare(ROUNDS[:3]) == []


def test_what_was_not_measured_is_none() -> None:
    nothing = StartResult("real-time", 1, (RateResult(100),), error="it decided nothing")
    result = summarise_rounds([nothing])[0]
    assert result["due_p50_ms"] is None
    assert result["lost"] is None
    assert result["cpu_s_per_1000"] is None
    assert not nothing.ok


def test_falling_behind_in_one_round_is_told() -> None:
    rounds = [start("streams", 1, 2.0), start("streams", 2, 900.0, 990.0, decided_share=0.98)]
    (result,) = summarise_rounds(rounds)
    assert (result["keeps_up"], result["decided_share"]) == (False, 0.98)


def test_a_contender_that_got_less_than_the_planned_rate_has_not_kept_up_with_it() -> None:
    rounds = [start("streams", 1, 2.0), start("streams", 2, 2.0, kept_rate=98.0)]
    assert [result["keeps_up"] for result in summarise_rounds(rounds)] == [False]
    assert describe_start(rounds[1])[0].endswith("; only 98 of 100 payments/s came")
    assert sample_rate("streams", 100, 1, kept_rate=98.8).keeps_up  # the generator sends 99.7


def test_a_start_that_failed_at_a_rate_did_not_keep_it_nor_any_above() -> None:
    rounds = [
        StartResult(
            "streams", number, tuple(sample_rate("streams", rate, number) for rate in rates), failed_at=failed_at
        )
        for number, rates, failed_at in [(1, (100, 1000, 5000), None), (2, (100,), 1000), (3, (100, 1000, 5000), None)]
    ]
    results = summarise_rounds(rounds)
    assert [(result["rate"], result["keeps_up"]) for result in results] == [(100, True), (1000, False), (5000, False)]


def test_who_was_killed_may_repeat_what_it_promises_no_more_of() -> None:
    rate = sample_rate("streams", 100, 1, audit=Audited(0, 3, 0))
    assert not StartResult("streams", 1, (rate,)).ok
    assert StartResult("streams", 1, (rate,), may_repeat=True).ok
    lossy = sample_rate("streams", 100, 1, audit=Audited(1, 3, 0))
    assert not StartResult("streams", 1, (lossy,), may_repeat=True).ok


def test_documentation_shows_what_a_kill_did() -> None:
    killed = start("streams", 1, 2.0, gap_s=1.82, audit=Audited(0, 450, 0))
    (result,) = summarise_rounds([killed])
    row = markdown_kills({"results": [{**result, "due_max_ms": 2500}]}).splitlines()[-1]
    assert row == "| `streams` | 100 | 1.82 | 2.5 | 450 | 0 |"
