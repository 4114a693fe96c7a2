"""Waiting on programs: until a condition holds, until one of them ends, or until it is too late."""

from __future__ import annotations

from pathlib import Path

import pytest

from fraud_filter.errors import FraudFilterError
from lab.harness.processes import Child
from lab.harness.waiting import TooLateError, let_pass, wait_until


def sh(directory: Path, script: str) -> Child:
    return Child("the script", ["sh", "-c", script], log=directory / "script.log")


def test_a_wait_in_vain_says_for_what_and_how_long(tmp_path: Path) -> None:
    with sh(tmp_path, "exec sleep 60") as child, pytest.raises(TooLateError) as late:
        wait_until(lambda: False, 0.2, "nothing was flagged", [child])
    assert str(late.value) == "nothing was flagged within 0.2 s"


def test_a_wait_ends_with_the_program_that_should_bring_it_about(tmp_path: Path) -> None:
    with sh(tmp_path, "echo no room left; exit 3") as child, pytest.raises(FraudFilterError) as ended:
        wait_until(lambda: False, 60, "nothing was flagged", [child])
    assert str(ended.value) == "the script ended with exit code 3; its last lines:\n  no room left"


def test_no_time_is_lost_on_a_program_that_has_ended(tmp_path: Path) -> None:
    with sh(tmp_path, "exit 3") as child, pytest.raises(FraudFilterError, match="the script ended with exit code 3"):
        let_pass(3600, [child])
