"""The working directory: removed after success and Ctrl-C, its logs kept after a failure."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.harness.workspace import Workspace


def work(after: Callable[[Workspace], object] | None = None) -> Path:
    """Writes a log and data in a workspace, then calls `after`; returns where it was."""
    with Workspace() as workspace:
        (workspace.logs / "a.log").write_text("it broke")
        (workspace.path / "data").mkdir()
        (workspace.path / "data" / "big").write_text("x")
        (workspace.path / "server.properties").write_text("y")
        if after:
            after(workspace)
    return workspace.path


def test_has_no_directory_before_it_is_entered() -> None:
    with pytest.raises(ValueError, match="only after"):
        _ = Workspace().path


def test_removed_when_all_went_well() -> None:
    assert not work().exists()


@pytest.mark.parametrize("error", [ValueError, RuntimeError])
def test_logs_and_only_logs_are_kept_on_failure(error: type[Exception], capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Path] = []

    def fail(workspace: Workspace) -> None:
        seen.append(workspace.path)
        raise error

    with pytest.raises(error):
        work(fail)
    path = seen[0]
    try:
        assert [entry.name for entry in path.iterdir()] == ["logs"]
        assert (path / "logs/a.log").read_text() == "it broke"
        assert f"logs are kept in {path}/logs" in capsys.readouterr().err
    finally:
        shutil.rmtree(path)


def test_interruption_is_no_failure() -> None:
    seen: list[Path] = []

    def interrupt(workspace: Workspace) -> None:
        seen.append(workspace.path)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work(interrupt)
    assert not seen[0].exists()


def test_logs_can_be_kept_without_an_exception(capsys: pytest.CaptureFixture[str]) -> None:
    path = work(Workspace.keep_logs)
    try:
        assert (path / "logs/a.log").exists()
        assert str(path) in capsys.readouterr().err
    finally:
        shutil.rmtree(path)
