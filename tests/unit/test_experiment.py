"""Changes of settings in words, and what an experiment makes of its rounds."""

from __future__ import annotations

import pytest

from fraud_filter.bench.result import RateResult, StartResult
from fraud_filter.config import load
from fraud_filter.errors import UsageError
from fraud_filter.experiment.change import BASE, Change, parse_change, parse_changes
from fraud_filter.experiment.result import summarise
from fraud_filter.experiment.run import Trial


def test_a_change_is_checked_and_made() -> None:
    change = parse_change('linger_ms=5; spark_conf={"spark.sql.codegen.wholeStage": "false"}')
    changed = change.apply(load({"mode": "real-time"}))
    assert (changed.linger_ms, changed.mode) == (5, "real-time")
    assert changed.spark_conf == {"spark.sql.codegen.wholeStage": "false"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("linger=5", "'linger=5' is not accepted: give SETTING=VALUE"),
        ("linger_ms", "'linger_ms' is not accepted"),
        ("", "'' is not accepted"),
        ("linger_ms=-1", r"setting linger_ms .*'-1' is not accepted"),
    ],
)
def test_what_is_no_change_is_refused_in_words(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_change(text)


def test_the_mode_as_it_is_comes_first_and_nothing_twice() -> None:
    assert [change.name for change in parse_changes(["linger_ms=5"])] == [BASE, "linger_ms=5"]
    with pytest.raises(UsageError, match="given twice"):
        parse_changes(["linger_ms=5", "linger_ms=5"])


def _trial(change: Change, number: int, p50: float, *, lost: int = 0) -> Trial:
    rate = RateResult(
        100.0,
        payments=1000,
        append={"p50_ms": p50, "p99_ms": 10 * p50},
        cpu_s={"contender": 2.0},
        lost=lost,
        duplicated=0,
        unexpected=0,
    )
    return Trial(change, StartResult(change.name, number, (rate,), first_decision_s=9.0 + number), scrapes=7)


def test_ratios_are_taken_within_a_round() -> None:
    base, slow = Change(), Change("linger_ms=5", {"linger_ms": 5})
    # The machine was three times slower in the second round, for both.
    rounds = [(1, 2.0, 4.0), (2, 6.0, 12.0), (3, 2.0, 5.0)]
    trials = [_trial(change, n, p50) for n, one, other in rounds for change, p50 in ((slow, other), (base, one))]
    first, second = summarise(trials)
    assert (first["change"], first["p50_ms"], first["p50_ms_ratio"]) == (BASE, 2.0, 1.0)
    assert (second["p50_ms"], second["p50_ms_ratio"], second["p99_ms_ratio"]) == (5.0, 2.0, 2.0)
    assert (second["cpu_s_per_1000"], second["first_decision_s"], second["scrapes"]) == (2.0, 11.0, 21)


def test_a_start_that_failed_is_told_and_leaves_the_others_their_figures() -> None:
    failed = Trial(Change("x=1"), StartResult("x=1", 1, error="it ended"), scrapes=0)
    base, other = summarise([_trial(Change(), 1, 2.0, lost=3), failed])
    assert (base["lost"], base["errors"]) == (3, [])
    assert (other["p50_ms"], other["p50_ms_ratio"], other["errors"]) == (None, None, ["it ended"])
