"""The stack's `.env`: made once, with secrets, private; every missing value is named."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from fraud_filter.compose import env_file
from fraud_filter.errors import UsageError


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


def test_a_made_file_lacks_nothing(made: Path) -> None:
    env_file.require(made, env_file.read(made))


@pytest.mark.parametrize("line", ["KAFKA_HEAP=", "KAFKA_HEAP", "# nothing"])
def test_a_missing_value_is_named(made: Path, line: str) -> None:
    kept = [each for each in made.read_text().splitlines() if not each.startswith("KAFKA_HEAP=")]
    made.write_text("\n".join([*kept, line]) + "\n")
    with pytest.raises(UsageError, match=r"\.env has no value for KAFKA_HEAP: ") as refused:
        env_file.require(made, env_file.read(made))
    assert len(str(refused.value).splitlines()) == 1


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read"):
        env_file.read(tmp_path)
