"""The stack's `.env`: made once, with secrets, private; every missing value is named."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, cast

import pytest

from fraud_filter.compose import env_file
from fraud_filter.compose.stack import Stack
from fraud_filter.errors import UsageError
from fraud_filter.home import HOME


@pytest.fixture
def made(tmp_path: Path) -> Path:
    path = tmp_path / ".env"
    env_file.make(path)
    return path


def test_it_has_every_name_of_the_example_and_generated_secrets(made: Path, tmp_path: Path) -> None:
    example, values = env_file.read(env_file.EXAMPLE), env_file.read(made)
    assert list(values) == list(example)
    assert {name for name in values if values[name] != example[name]} == set(env_file.SECRETS)
    assert all(len(values[name]) >= 32 for name in env_file.SECRETS)
    other = tmp_path / "other"
    env_file.make(other)
    assert not {values[name] for name in env_file.SECRETS} & {env_file.read(other)[name] for name in env_file.SECRETS}


def test_only_its_owner_can_read_it_also_after_a_change(made: Path) -> None:
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    env_file.change(made, "FRAUD_MODE", "continuous")
    assert stat.S_IMODE(made.stat().st_mode) == 0o600


def test_a_change_leaves_the_other_lines_as_they_are(made: Path) -> None:
    before = made.read_text().splitlines()
    env_file.change(made, "FRAUD_MODE", "continuous")
    after = made.read_text().splitlines()
    assert [line for line in after if line not in before] == ["FRAUD_MODE=continuous"]
    assert len(after) == len(before)


@pytest.mark.usefixtures("compose")
def test_a_made_file_lacks_nothing(made: Path) -> None:
    assert "fraud-filter" in Stack(cast(Any, None), made, env_file.read(made)).services()


@pytest.mark.usefixtures("compose")
@pytest.mark.parametrize("line", ["KAFKA_HEAP=", "# nothing"])
def test_a_missing_value_is_named(made: Path, line: str) -> None:
    kept = [each for each in made.read_text().splitlines() if not each.startswith("KAFKA_HEAP=")]
    made.write_text("\n".join([*kept, line]) + "\n")
    with pytest.raises(UsageError, match=r"\.env, or a Compose file, is not accepted: .*KAFKA_HEAP") as refused:
        Stack(cast(Any, None), made, env_file.read(made)).services()
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.usefixtures("compose")
def test_what_is_no_port_is_named(made: Path) -> None:
    env_file.change(made, "KAFKA_PORT", "70000")
    with pytest.raises(UsageError, match=r"is not accepted: .*70000"):
        Stack(cast(Any, None), made, env_file.read(made)).services()


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read"):
        env_file.read(tmp_path)


@pytest.mark.parametrize("name", ["{directory}/evil.yml", "docker-compose.yml:{directory}/evil.yml", "../{up}evil.yml"])
def test_compose_files_out_of_the_checkout_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "evil.yml").touch()
    name = name.format(directory=tmp_path, up=os.path.relpath(tmp_path, HOME.parent) + "/")
    with pytest.raises(UsageError, match=r"COMPOSE_FILE: .*evil\.yml is not in /"):
        env_file.compose_files({"COMPOSE_FILE": name})


def test_the_file_does_not_choose_the_programs_that_are_run(tmp_path: Path) -> None:
    """A PATH in it was passed on, and `docker` was looked for there."""
    env = tmp_path / ".env"
    env_file.make(env)
    for name, value in (("PATH", str(tmp_path)), ("DOCKER_HOST", "tcp://evil:1"), ("LD_PRELOAD", "/tmp/evil.so")):  # noqa: S108
        env_file.change(env, name, value)
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\necho evil\n")
    program.chmod(0o755)
    stack = Stack(cast(Any, None), env, env_file.read(env))
    passed = stack.environment()
    assert passed["PATH"] == os.environ["PATH"]
    assert "LD_PRELOAD" not in passed
    assert passed.get("DOCKER_HOST") == os.environ.get("DOCKER_HOST")
    assert passed["KAFKA_HEAP"] == "512m"
    assert "evil" not in stack.compose("version").stdout


# -- a standby: `STANDBY` says whether there is one, and Compose's profile follows


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


def test_three_brokers_are_a_profile_too(stack: Stack) -> None:
    stack.change("BROKERS", "3")
    stack.set_standby(True)
    assert env_file.read(stack.env)["COMPOSE_PROFILES"] == "grafana,standby,brokers"
    assert {"kafka", "kafka-2", "kafka-3"} < set(stack.services())
    stack.change("BROKERS", "1")
    stack.set_standby(None)
    assert not {"kafka-2", "kafka-3"} & set(stack.services())
    stack.change("BROKERS", "2")
    with pytest.raises(UsageError, match="BROKERS=2 is not accepted: give 1 or 3"):
        stack.set_standby(None)
    stack.change("BROKERS", "3")
    stack.change("COMPOSE_FILE", "docker-compose.yml:docker-compose.existing-kafka.yml")
    with pytest.raises(UsageError, match=r"BROKERS=3 is not accepted with docker-compose\.existing-kafka\.yml: give 1"):
        stack.set_standby(None)


@pytest.mark.parametrize("text", ["2", "yes"])
def test_another_value_is_refused(stack: Stack, text: str) -> None:
    stack.change("STANDBY", text)
    with pytest.raises(UsageError, match=f"STANDBY={text} is not accepted: give 1 for a standby, else 0"):
        stack.set_standby(None)
