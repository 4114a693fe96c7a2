"""The jars of a lock in a folder, as the images get them; from a local repository, nothing leaves this machine."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from jarcopy import main

JAR = b"a jar"


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of one jar, which lies in the local repository."""
    repository = tmp_path / "repository"
    jar = repository / "org/example/alpha/1.0/alpha-1.0.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(JAR)
    configuration = tmp_path / "jgo.conf"
    configuration.write_text(f"[settings]\nm2_repo = {repository}\nrepo_cache = {repository}\n")
    monkeypatch.setenv("JGO_CONFIG_FILE", str(configuration))
    monkeypatch.setenv("M2_REPO", str(repository))
    lock = tmp_path / "jgo.lock.toml"
    lock.write_text(
        '[[dependencies]]\ngroupId = "org.example"\nartifactId = "alpha"\nversion = "1.0"\npackaging = "jar"\n'
        f'sha256 = "{hashlib.sha256(JAR).hexdigest()}"\n'
    )
    return lock


def test_the_jars_lie_in_the_folder(lock: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    result = CliRunner().invoke(main, [str(lock), str(folder)])
    assert result.exit_code == 0
    assert result.output == f"{folder}: 1 jars\n"
    assert [(jar.name, jar.read_bytes()) for jar in folder.iterdir()] == [("alpha-1.0.jar", JAR)]


def test_another_jar_than_the_locked_one_ends_the_build(lock: Path, tmp_path: Path) -> None:
    lock.write_text(lock.read_text().replace('sha256 = "', 'sha256 = "0'))
    result = CliRunner().invoke(main, [str(lock), str(tmp_path / "jars")])
    assert result.exit_code == 1
    assert "alpha-1.0.jar is not the jar that was locked" in result.output
    assert not (tmp_path / "jars").exists()
