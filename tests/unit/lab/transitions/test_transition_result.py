"""Changes of mode: which are run in which order, and what is written about them."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner
from rich.console import Console

from fraud_filter.cli.main import cli
from fraud_filter.errors import UsageError
from fraud_filter.home import HOME
from lab.bench.names import parse_kinds
from lab.harness.outcome import Audited
from lab.transitions.result import StopKind, Transition, markdown_table, result_table, write_transitions
from lab.transitions.route import order_changes, parse_changes

DONE = Transition("continuous", "real-time", "clean", "unchanged", Audited(0, 3, 0), 12.5)


def test_all_twelve_are_one_round_trip() -> None:
    ordered = order_changes(parse_changes(""))
    assert len(set(ordered)) == len(ordered) == 12
    assert all(one[1] == other[0] for one, other in pairwise(ordered))


def test_some_keep_to_what_was_asked_for() -> None:
    asked = parse_changes("continuous:real-time, continuous:micro-batch,micro-batch:continuous")
    assert order_changes(asked) == [
        ("continuous", "micro-batch"), ("micro-batch", "continuous"), ("continuous", "real-time"),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["continuous", "continuous:continuous", "continuous:slow", ":"])
def test_what_is_no_change_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--only"):
        parse_changes(text)


def test_ways_to_stop_are_told_by_name() -> None:
    kinds: tuple[StopKind, ...] = get_args(StopKind)
    assert parse_kinds("handover,clean", kinds, "--stop", "a way to end") == ["clean", "handover"]
    with pytest.raises(UsageError, match="argument --stop: '' names none: choose from clean, kill, handover"):
        parse_kinds("", kinds, "--stop", "a way to end")
    done = CliRunner().invoke(cli, ["transitions", "--stop", "clean,both"], standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert "argument --stop: 'both' is not a way to end: choose from clean, kill, handover" in str(done.exception)


@pytest.mark.parametrize(
    ("change", "ok"),
    [
        ({}, True),
        ({"audit": Audited(0, 900, 0)}, True),
        ({"audit": Audited(1, 0, 0)}, False),
        ({"audit": Audited(0, 0, 1)}, False),
        ({"error": "x"}, False),
    ],
)
def test_only_duplicates_are_no_fault(change: dict[str, object], ok: bool) -> None:
    assert replace(DONE, **change).ok is ok  # type: ignore[arg-type]
    assert not Transition("continuous", "real-time", "kill").ok  # never audited


def test_results_replace_those_of_the_same_change_and_stop_only(tmp_path: Path) -> None:
    file = tmp_path / "transitions.json"
    file.touch()
    write_transitions(file, [DONE, replace(DONE, stop="kill")], add=True)
    write_transitions(file, [replace(DONE, audit=Audited(2, 3, 0))], add=True)
    found = json.loads(file.read_text())
    assert [(one["stop"], one["lost"]) for one in found] == [("kill", 0), ("clean", 2)]
    assert found[1] == {
        "from": "continuous", "to": "real-time", "stop": "clean", "how": "unchanged", "lost": 2, "duplicated": 3,
        "unexpected": 0, "seconds": 12.5, "error": "",
    }  # fmt: skip
    write_transitions(file, [DONE], add=False)
    assert len(json.loads(file.read_text())) == 1


def test_the_documentation_shows_all_ways_to_stop_in_a_line() -> None:
    killed = replace(DONE, stop="kill", how="repaired: the last entry", audit=Audited(0, 1234, 0), seconds=30.0)
    failed = replace(DONE, new="micro-batch", audit=Audited(), seconds=None, error="it did not start")
    warm = replace(DONE, stop="handover", audit=Audited(0, 0, 0), seconds=0.9)
    assert markdown_table([one.to_dict() for one in (DONE, killed, warm, failed)]).splitlines()[2:] == [
        "| `continuous` | `real-time` | 0 + 0 + 0 | 3 | 1,234 | 0 | 12.5 | 30.0 | 0.9 | unchanged, repaired |",
        "| `continuous` | `micro-batch` | - | - | - | - | - | - | - | it did not start |",
    ]


@pytest.mark.parametrize("content", ["no json", "{}", '[{"mode": "continuous"}]', "[1]"])
def test_results_are_not_added_to_something_else(tmp_path: Path, content: str) -> None:
    file = tmp_path / "notes.json"
    file.write_text(content)
    with pytest.raises(UsageError, match=r"argument --add: .*notes\.json .*--output"):
        write_transitions(file, [DONE], add=True)
    assert file.read_text() == content


def test_the_table_tells_errors_in_their_own_words() -> None:
    console = Console(width=300, record=True, file=StringIO())
    console.print(result_table([replace(DONE, audit=Audited(0, 0, 7), error="died [/127.0.0.1:9092]")]))
    assert "died [/127.0.0.1:9092]" in console.export_text()


def test_a_place_for_the_table_is_asked_for_before_the_work(tmp_path: Path) -> None:
    file = tmp_path / "modes.md"
    file.write_text("no place\n")
    done = CliRunner().invoke(cli, ["transitions", "--docs", str(file)], standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert "argument --docs:" in str(done.exception)
    assert "<!-- transitions: begin -->" in str(done.exception)


def test_rules_with_features_are_refused_as_no_two_modes_compute_them() -> None:
    rules = str(HOME / "app/rules-velocity.yml")
    done = CliRunner().invoke(cli, ["transitions", "--rules", rules], standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert "has features, whose state only real-time mode has" in str(done.exception)
    assert "fraud-filter takeover --modes real-time" in str(done.exception)
