"""A warm filter asks the active one to end in its favour: by a file in the checkpoint, wherever that lies.

By a second file of the same form a user asks the former filter to do so. A file is renewed each second. One that is not
has nobody behind it, and counts for nothing.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

from fraud_filter.checkpoint.entries import BrokenEntryError
from fraud_filter.checkpoint.files import CheckpointError, CheckpointFiles
from fraud_filter.checkpoint.notes import FOLDER

REQUEST, ROLLBACK = f"{FOLDER}/handover.json", f"{FOLDER}/rollback.json"
#: When the active filter is to end: at its next commit, or at once.
When = Literal["commit", "now"]
#: What a standby that waits is told to ask for.
_SIGNALS: dict[int, When] = {signal.SIGUSR1: "commit", signal.SIGUSR2: "now"}
_RENEW_S = 1.0
#: Without a change for so long the asker is gone.
_STALE_S = 5.0


@dataclass
class Request:
    """Ours; `renew` is to be called often, `withdraw` at the end of the wait. `id`: of the filter that takes over."""

    files: CheckpointFiles
    when: When
    id: str
    path: str = REQUEST
    _count: int = 0
    _renewed_at: float | None = None

    def renew(self) -> None:
        """Says that we still wait.

        Raises:
            CheckpointError: the file system refuses.
        """
        now = time.monotonic()
        if self._renewed_at is None or now - self._renewed_at >= _RENEW_S:
            self._count += 1
            said = {"id": self.id, "when": self.when, "count": self._count}
            self.files.write(self.path, json.dumps(said).encode())
            self._renewed_at = now

    def withdraw(self) -> None:
        """We ask for nothing any more."""
        with suppress(CheckpointError):
            if self._renewed_at is not None:
                self.files.remove(self.path)


class Inbox:
    """What the active filter is asked for, or the former one, at another `path`."""

    def __init__(self, files: CheckpointFiles, path: str = REQUEST, *, of: str = "") -> None:
        """`of`: the filter that is to take over; whichever, where it is empty."""
        self._files, self._path, self._of = files, path, of
        self._last: bytes | None = None
        self._changed_at: float | None = None

    def look(self) -> When | None:
        """When it is to end, as somebody asks who is there at this moment; None where nobody does.

        Raises:
            CheckpointError: the file system refuses.
        """
        content = self._read()
        if content is None:
            self._last = self._changed_at = None
            return None
        if self._last is not None and content != self._last:
            self._changed_at = time.monotonic()
        self._last = content
        if self._changed_at is None or time.monotonic() - self._changed_at > _STALE_S:
            return None
        try:
            said = json.loads(content)
            if self._of not in ("", said["id"]):
                return None
            return "now" if said["when"] == "now" else "commit"
        except (ValueError, KeyError, TypeError):
            return None

    def _read(self) -> bytes | None:
        try:
            return self._files.read(self._path) if self._files.exists(self._path) else None
        except BrokenEntryError:  # it is just being replaced
            return self._last
        except CheckpointError:
            if self._files.exists(self._path):
                raise
            return None


@contextmanager
def asked_by_signals(tell: Callable[[When], None]) -> Iterator[None]:
    """Within the block `tell` is called, in a signal handler, when SIGUSR1 or SIGUSR2 tells a standby to ask.

    To be used in the main thread.
    """
    before = {number: signal.signal(number, lambda which, _frame: tell(_SIGNALS[which])) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
