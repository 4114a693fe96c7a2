"""The class archive where none can be had: programs go on without one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fraud_filter.java import class_archive
from lab.harness.supplies import ensure_class_archive


def test_without_a_java_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert class_archive.find() is None


@pytest.mark.parametrize("release", [None, 'JAVA_VERSION="21.0.9"\n'])
def test_a_java_that_would_not_take_it_gets_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str | None
) -> None:
    said: list[str] = []
    if release:
        (tmp_path / "release").write_text(release)
    ensure_class_archive(tmp_path, said.append)
    assert said == []
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert class_archive.find() is None


def test_a_java_that_fails_is_logged_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    java = tmp_path / "bin/java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    (tmp_path / "release").write_text(f'JAVA_VERSION="17.0.{os.getpid()}"\n')
    said: list[str] = []
    ensure_class_archive(tmp_path, said.append)
    assert said == ["preparing Spark's classes for faster starts (once)"]
    assert "'event': 'class_archive_failed'" in caplog.text
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert class_archive.find() is None
