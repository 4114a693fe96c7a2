"""Finding Java: made-up `java` programs answer as real ones of several versions do."""

from __future__ import annotations

from pathlib import Path

import pytest

from fraud_filter.errors import UsageError
from lab.harness import java

VECTOR = "jdk.incubator.vector"


def make_java(home: Path, version: str, *modules: str) -> Path:
    """A home whose `bin/java` says that it is `version` with `modules` (Java 8 knows no modules)."""
    listed = "\n".join(f"echo {module}@{version}" for module in ("java.base", *modules))
    answer = f'echo "    java.home = {home}" >&2\n{listed}' if modules else "echo Unrecognized option >&2; exit 1"
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{answer}\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Java, of an ordinary user, that reaches no download site; `path` is its PATH."""
    (tmp_path / "path").mkdir()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}")
    monkeypatch.setattr(java, "_INSTALLED", tmp_path / "jvm")
    monkeypatch.setenv("CJDK_INDEX_URL", "http://127.0.0.1:1/index.json")
    monkeypatch.setenv("CJDK_CACHE_DIR", str(tmp_path / "cjdk"))
    return tmp_path


def shell(machine: Path, name: str, script: str) -> None:
    program = machine / "path" / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.mark.parametrize("version", ["17.0.15", "21.0.1"])
def test_java_home_is_taken(machine: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    make_java(machine / "home", version, VECTOR)
    monkeypatch.setenv("JAVA_HOME", str(machine / "home"))
    said: list[str] = []
    assert java.find_java(said.append) == machine / "home"
    assert said == []


def test_unusable_ones_are_named_and_the_search_goes_on(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_java(machine / "eleven", "11.0.2", VECTOR)
    trimmed = make_java(machine / "trimmed", "21.0.1", "java.logging")
    make_java(machine / "jvm/java-8-17th-build", "1.8")
    make_java(machine / "jvm/java-21-openjdk", "21.0.5", VECTOR)
    monkeypatch.setenv("JAVA_HOME", str(machine / "eleven"))
    (machine / "path/java").symlink_to(trimmed)
    said: list[str] = []
    assert java.find_java(said.append) == machine / "jvm/java-21-openjdk"
    assert "is Java 11; Java 17 or 21 is needed" in said[0]
    assert "is a trimmed Java 21 without the module jdk.incubator.vector" in said[1]
    assert "Java 8 or older" in said[2]
    assert len(said) == 3


def test_home_is_what_the_runtime_says_behind_a_wrapper_script(machine: Path) -> None:
    real = make_java(machine / "real", "17.0.15", VECTOR)
    shell(machine, "java", f'exec {real} "$@"')
    assert java.find_java() == machine / "real"


def test_java_home_that_does_not_exist_is_named(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(machine / "nowhere"))
    said: list[str] = []
    assert java.find_java(said.append) is None
    assert f"JAVA_HOME: {machine / 'nowhere'}/bin/java does not run" in said[0]


def test_none_at_all_says_what_to_install(machine: Path) -> None:
    assert machine
    with pytest.raises(UsageError) as caught:
        java.require_java()
    assert "install one (Debian, Ubuntu: openjdk-17-jre-headless or openjdk-21-jre-headless)" in str(caught.value)
    assert "cjdk could not fetch one: " in str(caught.value)
    assert "\n" not in str(caught.value)
