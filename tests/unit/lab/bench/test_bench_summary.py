"""Medians of rounds, their spread, and ratios: computed by hand from a few numbers."""

from __future__ import annotations

import pytest

from bench_sample import CHANGED, sample_rate
from lab.bench.result import RateResult, StartResult
from lab.bench.summary import find_limits, ratios, share_within, summarise_rounds, summarise_starts
from lab.bench.table import describe_start, markdown_kills
from lab.harness.outcome import Audited


def start(name: str, number: int, p50_ms: float, p99_ms: float | None = None, **changes: object) -> StartResult:
    latency = {"p50_ms": p50_ms, "p99_ms": 10 * p50_ms if p99_ms is None else p99_ms}
    return StartResult(name, number, (sample_rate(name, 100, number, append=latency, **changes),), 10.0 + number)


ROUNDS = [
    start("real-time", 1, 3.0, cpu_s={"contender": 2.0}),
    start("real-time", 2, 2.0, cpu_s={"contender": 6.0}, audit=Audited(2, 0, 0)),
    start("real-time", 3, 2.5, cpu_s={"contender": 4.0}, audit=Audited(1, 0, 0)),
    start("streams", 1, 2.0),
    start("streams", 2, 2.0),
    start("streams", 3, 1.0),
]


def test_a_result_is_the_median_of_its_rounds_and_says_how_far_they_are_apart() -> None:
    result = summarise_rounds(ROUNDS)[0]
    assert (result["mode"], result["rate"], result["rounds"]) == ("real-time", 100, 3)
    assert (result["p50_ms"], result["p99_ms"]) == (2.5, 25)
    assert result["spread_p50"] == pytest.approx(0.4)
    assert result["cpu_s_per_1000"] == 2.0  # 4 s for 2,000 payments
    assert result["lost"] == 3


def test_a_ratio_is_the_median_of_the_rounds_own_ratios() -> None:
    assert ratios(ROUNDS, 100)["real-time/streams"] == {"p50": 1.5, "p99": 1.5, "cpu": 1.0}  # of 1.5, 1 and 2.5


def test_a_contender_with_another_setting_is_set_against_the_one_that_it_changes() -> None:
    changed = [start(CHANGED, number, 6.0, cpu_s={"contender": 8.0}) for number in (1, 2, 3)]
    found = ratios([*ROUNDS, *changed], 100)
    assert list(found) == [f"{CHANGED}/real-time", "real-time/streams"]
    assert found[f"{CHANGED}/real-time"] == {"p50": 2.4, "p99": 2.4, "cpu": 2.0}


def test_the_limit_itself_is_within_the_limit() -> None:
    one = sample_rate("streams", 100, 1, append_ms={19: 1, 20: 1, 21: 2})
    assert share_within([one], 20) == 0.5
    assert share_within([], 20) is None


def test_a_pair_of_which_one_did_not_run_has_no_ratio() -> None:
    assert list(ratios(ROUNDS, 100)) == ["real-time/streams"]
    assert ratios(ROUNDS, 1000) == {}


def test_a_round_without_the_other_contender_is_left_out_of_the_ratio() -> None:
    assert ratios([*ROUNDS[:3], ROUNDS[3]], 100)["real-time/streams"]["p50"] == 1.5


def test_what_was_not_measured_is_none() -> None:
    nothing = StartResult("real-time", 1, (RateResult(100),), error="it decided nothing")
    result = summarise_rounds([nothing])[0]
    assert result["p50_ms"] is None
    assert result["lost"] is None
    assert result["cpu_s_per_1000"] is None
    assert summarise_starts([nothing])[0]["errors"] == ["round 1: it decided nothing"]
    assert not nothing.ok


def test_falling_behind_in_one_round_is_told() -> None:
    rounds = [start("streams", 1, 2.0), start("streams", 2, 900.0, behind_s=14.0, lag=2957)]
    assert [result["keeps_up"] for result in summarise_rounds(rounds)] == [False]


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
    assert find_limits(results, 100) == [{"mode": "streams", "keeps_up_at": 100, "fast_at": 100}]


def test_the_limit_is_the_highest_rate_up_to_which_all_held() -> None:
    def at(rate: float, due_p99_ms: float | None, *, keeps_up: bool = True) -> dict[str, object]:
        return {"mode": "streams", "rate": rate, "p99_ms": 1.0, "due_p99_ms": due_p99_ms, "keeps_up": keeps_up}

    results = [at(5000, 90.0), at(100, 9.0), at(1000, 100.0), at(10_000, 101.0), at(20_000, 50.0, keeps_up=False)]
    assert find_limits(results, 100) == [{"mode": "streams", "keeps_up_at": 10_000, "fast_at": 5000}]
    assert find_limits([at(100, None)], 100) == [{"mode": "streams", "keeps_up_at": 100, "fast_at": None}]
    assert find_limits([], 100) == []


def test_who_was_killed_may_repeat_what_it_promises_no_more_of() -> None:
    rate = sample_rate("streams", 100, 1, audit=Audited(0, 3, 0))
    assert not StartResult("streams", 1, (rate,)).ok
    assert StartResult("streams", 1, (rate,), may_repeat=True).ok
    lossy = sample_rate("streams", 100, 1, audit=Audited(1, 3, 0))
    assert not StartResult("streams", 1, (lossy,), may_repeat=True).ok


def test_documentation_shows_what_a_kill_did() -> None:
    killed = start("streams", 1, 2.0, gap_s=1.82, audit=Audited(0, 450, 0))
    (result,) = summarise_rounds([killed])
    row = markdown_kills([{**result, "max_ms": 2500}]).splitlines()[-1]
    assert row == "| `streams` | 100 | 1.82 | 2.5 | 450 | 0 |"
