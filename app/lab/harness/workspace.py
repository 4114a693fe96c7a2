"""The directory that a program run works in: gone when all went well, with its logs kept when not."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from types import TracebackType

import click


class Workspace:
    """A temporary directory, removed at the end; after a failure the logs stay and their path is told."""

    def __init__(self, prefix: str = "fraud-filter-") -> None:
        self._prefix = prefix
        self._keep = False
        self._path: Path | None = None

    @property
    def path(self) -> Path:
        """The directory; it exists from entering to leaving the context, its logs perhaps longer."""
        if self._path is None:
            raise ValueError("a workspace has a directory only after `with`")
        return self._path

    @property
    def logs(self) -> Path:
        """The directory of the log files."""
        return self.path / "logs"

    def keep_logs(self) -> None:
        """Keeps the logs although no exception was raised: for a failure that shows in an exit code."""
        self._keep = True

    def __enter__(self) -> Workspace:
        self._path = Path(tempfile.mkdtemp(prefix=self._prefix))
        self.logs.mkdir()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failed = kind is not None and issubclass(kind, Exception)  # Ctrl-C and exit are no failures
        if not (failed or self._keep) or not any(self.logs.iterdir()):
            shutil.rmtree(self.path, ignore_errors=True)
            return
        for entry in self.path.iterdir():
            if entry != self.logs:
                shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink()
        click.echo(f"logs are kept in {self.logs}", err=True)
