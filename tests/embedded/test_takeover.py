"""Interruptions of the filter with a standby, as `make takeover` does them: under load, audited."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def take_over(directory: Path, *arguments: str) -> list[dict[str, Any]]:
    """The rows that the verb writes, under little load."""
    return write(directory / "takeover.json", "takeover", *arguments, "--seconds", "2")


def write(file: Path, verb: str, *arguments: str) -> list[dict[str, Any]]:
    """The rows that a verb writes to the file."""
    short = ("--standby-warm-up-s", "3", "--output", str(file))
    argv = [sys.executable, "-m", "fraud_filter", verb, *arguments, *short]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=580, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows: list[dict[str, Any]] = json.loads(file.read_text())
    return rows


@pytest.mark.timeout(590)
def test_a_standby_takes_over_from_a_killed_filter_and_not_from_a_frozen_one(tmp_path: Path) -> None:
    """With the state of some cards, on one checkpoint; nothing is lost."""
    kinds = ("--what", "freeze,kill", "--mixed", "--cards", "300", "--real-time-duration", "5 seconds")
    items = take_over(tmp_path, "--modes", "real-time", "--standby", "with", "--tries", "1", *kinds)
    assert [(one["what"], one["mode"], one["standby"], one["cards"]) for one in items] == [
        ("kill", "real-time", True, 300),
        ("freeze", "real-time", True, 300),
    ]
    assert [(one["lost"], one["unexpected"], one["error"]) for one in items] == [(0, 0, "")] * 2
    assert all(0 < one["seconds"] <= one["every_partition_s"] for one in items)
    assert [file.name for file in tmp_path.iterdir()] == ["takeover.json"]


@pytest.mark.timeout(590)
@pytest.mark.exhaustive  # test_handover changes them once
@pytest.mark.parametrize("tries", [2, 4])
def test_rules_change_at_a_commit_and_nothing_is_lost_or_repeated(tmp_path: Path, tries: int) -> None:
    """By a new filter at first, and then by the two that there are, to and fro."""
    items = take_over(tmp_path, "--what", "rules", "--modes", "micro-batch", "--tries", str(tries), "--in-turn")
    assert [(one["what"], one["mode"], one["error"]) for one in items] == [("rules", "micro-batch", "")] * tries
    assert [(one["lost"], one["duplicated"], one["unexpected"]) for one in items] == [(0, 0, 0)] * tries
    assert [one["in_turn"] for one in items] == [False, *[True] * (tries - 1)]
    assert all(0 < one["seconds"] <= one["every_partition_s"] for one in items)


@pytest.mark.timeout(590)
def test_a_mode_follows_another_by_a_handover(tmp_path: Path) -> None:
    (one,) = write(
        tmp_path / "transitions.json", "transitions", "--only", "continuous:micro-batch", "--stop", "handover",
        "--rate", "100", "--seconds", "1", "--continuous-interval", "1 second",
    )  # fmt: skip
    assert (one["from"], one["to"], one["stop"], one["error"]) == ("continuous", "micro-batch", "handover", "")
    assert (one["lost"], one["unexpected"]) == (0, 0)
    assert one["how"].startswith("repaired: ")
    assert one["seconds"] > 0
