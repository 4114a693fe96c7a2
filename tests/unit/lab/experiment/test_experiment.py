"""Changes of settings in words, and what an experiment makes of its rounds."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from fraud_filter.config import load
from fraud_filter.errors import UsageError
from fraud_filter.rules.ruleset import load_rules
from fraud_filter.schema import load_schema
from lab.bench.plan import BenchPlan
from lab.bench.results.result import RateResult, StartResult
from lab.experiment.change import BASE, Change, parse_change, parse_changes
from lab.experiment.result import result_table, summarise
from lab.experiment.rule_files import check_sizes, write_rules
from lab.experiment.run import Trial
from lab.harness.outcome import Audited


def test_a_change_is_checked() -> None:
    change = parse_change('linger_ms=5; spark_conf={"spark.sql.codegen.wholeStage": "false"}')
    assert change.settings == {"linger_ms": 5, "spark_conf": {"spark.sql.codegen.wholeStage": "false"}}


def test_sizes_are_a_change_too() -> None:
    change = parse_change("partitions=8;linger_ms=5;rule_count=20")
    assert (change.sizes, change.settings) == ({"partitions": 8, "rule_count": 20}, {"linger_ms": 5})
    assert parse_change("linger_ms=5").sizes == {}
    plan = BenchPlan(("floor",), partitions=3)
    assert [one.plan(plan).partitions for one in (change, Change())] == [8, 3]


def test_checkpoints_lie_where_a_change_wants_them(tmp_path: Path) -> None:
    assert parse_change(f"checkpoint={tmp_path};linger_ms=5").checkpoints == tmp_path
    assert parse_change("linger_ms=5").checkpoints is None


def test_a_place_for_checkpoints_does_not_depend_on_where_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "disk").mkdir()
    monkeypatch.chdir(tmp_path)
    assert parse_change("checkpoint=disk").checkpoints == tmp_path / "disk"


def test_less_rules_than_there_are_would_flag_less() -> None:
    check_sizes(load(), {"rule_count": 6})
    check_sizes(load(), {"blocked_ids": 1})
    with pytest.raises(UsageError, match=r"rule_count=5 is not accepted: give 6 or more"):
        check_sizes(load(), {"rule_count": 5})


def test_rules_grow_and_flag_no_other_payments(tmp_path: Path) -> None:
    settings = load()
    schema = load_schema(settings.payment_schema)
    shipped = load_rules(settings.rules, schema).rules
    stolen = {rule.name: rule for rule in shipped}["stolen-card"]
    grown = load_rules(write_rules(settings, {"rule_count": 20, "blocked_ids": 100}, tmp_path / "a"), schema)
    assert [rule.name for rule in grown.rules[: len(shipped)]] == [rule.name for rule in shipped]
    assert len(grown.rules) == 20
    longer = {rule.name: rule for rule in grown.rules}["stolen-card"]
    assert len(longer.ids) == 100
    assert longer.ids[: len(stolen.ids)] == stolen.ids
    assert {rule.when for rule in shipped} & {rule.when for rule in grown.rules[len(shipped) :]} == set()
    assert write_rules(settings, {"partitions": 4}, tmp_path / "c") == settings.rules


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("linger=5", "'linger=5' is not accepted: give SETTING=VALUE"),
        ("linger_ms", "'linger_ms' is not accepted"),
        ("", "'' is not accepted"),
        ("partitions=0", "partitions=0 is not accepted: give a whole number from 1 to 64"),
        ("partitions=two", "partitions=two is not accepted"),
        ("linger_ms=-1", r"setting linger_ms .*'-1' is not accepted"),
        ("linger_ms=5;mode=real-time", "'mode=real-time' is not accepted: experiments set mode themselves"),
        ("checkpoint=no/such", "'checkpoint=no/such' is not accepted: give a directory that exists"),
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
        stolen_share=number / 100,
        audit=Audited(lost, 0, 0),
    )
    start = StartResult(change.name, number, (rate,), first_decision_s=9.0 + number, repeated=number - 1)
    return Trial(change, start, scrapes=7, partitions=2)


def test_ratios_are_taken_within_a_round() -> None:
    base, slow = Change(), Change("linger_ms=5", {"linger_ms": 5})
    # The machine was three times slower in the second round, for both.
    rounds = [(1, 2.0, 4.0), (2, 6.0, 12.0), (3, 2.0, 5.0)]
    trials = [_trial(change, n, p50) for n, one, other in rounds for change, p50 in ((slow, other), (base, one))]
    first, second = summarise(trials)
    assert (first["change"], first["p50_ms"], first["p50_ms_ratio"]) == (BASE, 2.0, 1.0)
    assert (second["p50_ms"], second["p50_ms_ratio"], second["p99_ms_ratio"]) == (5.0, 2.0, 2.0)
    assert (second["cpu_s_per_1000"], second["first_decision_s"], second["scrapes"]) == (2.0, 11.0, 21)
    assert (second["repeated"], second["stolen_share"]) == (3, 0.02)


def test_a_start_that_failed_is_told_and_leaves_the_others_their_figures() -> None:
    failed = Trial(Change("x=1"), StartResult("x=1", 1, error="it ended"), scrapes=0, partitions=2)
    base, other = summarise([_trial(Change(), 1, 2.0, lost=3), failed])
    assert (base["lost"], base["errors"]) == (3, [])
    assert (other["p50_ms"], other["p50_ms_ratio"], other["errors"]) == (None, None, ["it ended"])
    assert (other["lost"], other["unexpected"]) == (None, None)


def test_the_table_tells_what_is_unexpected_and_errors_in_their_own_words() -> None:
    trial = _trial(Change("spark_master=local[2]"), 1, 2.0)
    rate = replace(trial.start.rates[0], audit=Audited(0, 0, 7))
    odd = replace(trial.start, rates=(rate,), error="died [/127.0.0.1:9092]")
    console = Console(width=300, record=True, file=StringIO())
    console.print(result_table(summarise([replace(trial, start=odd)])))
    line = next(line for line in console.export_text().splitlines() if "local[2]" in line)
    assert " 7 " in line
    assert "died [/127.0.0.1:9092]" in line
