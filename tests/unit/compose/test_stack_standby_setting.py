"""Whether there is a standby: `STANDBY` in `.env` says it, and Compose's profile follows."""

from __future__ import annotations

import pytest

from fraud_filter.compose import env_file
from fraud_filter.compose.stack import Stack
from fraud_filter.errors import UsageError


def test_on_and_off_are_written_for_compose_too(stack: Stack) -> None:
    stack.profiles = ["grafana"]
    before = stack.env.read_text()
    stack.set_standby(True)
    assert stack.has_standby
    found = env_file.read(stack.env)
    assert (found["STANDBY"], found["COMPOSE_PROFILES"]) == ("1", "grafana,standby")
    assert stack.environment()["COMPOSE_PROFILES"] == "grafana,standby"
    stack.set_standby(None)
    assert stack.has_standby
    stack.set_standby(False)
    assert not stack.has_standby
    assert stack.env.read_text() == before


def test_what_is_in_the_file_wins_over_the_profile(stack: Stack) -> None:
    stack.change("COMPOSE_PROFILES", "standby")
    stack.set_standby(None)
    assert stack.profiles == []
    assert env_file.read(stack.env)["COMPOSE_PROFILES"] == ""


@pytest.mark.parametrize("text", ["2", "yes"])
def test_another_value_is_refused(stack: Stack, text: str) -> None:
    stack.change("STANDBY", text)
    with pytest.raises(UsageError, match=f"STANDBY={text} is not accepted: give 1 for a standby, else 0"):
        stack.set_standby(None)
