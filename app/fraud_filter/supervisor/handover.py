"""A warm standby asks the active filter to end, and the active filter does: by a file in the checkpoint."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fraud_filter.checkpoint.contents import entry_numbers
from fraud_filter.checkpoint.entries import COMMITS, BrokenEntryError
from fraud_filter.checkpoint.files import CheckpointError, CheckpointFiles
from fraud_filter.checkpoint.notes import FOLDER
from fraud_filter.modes import Mode
from fraud_filter.spark.internals import BatchEnd
from fraud_filter.stop_signals import handled
from fraud_filter.text.logs import get_logger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_log = get_logger(__name__)
REQUEST = f"{FOLDER}/handover.json"
#: When the active filter is to end: at its next commit, or at once.
When = Literal["commit", "now"]
#: What a standby that waits is told to ask for.
_SIGNALS: dict[signal.Signals, When] = {signal.SIGUSR1: "commit", signal.SIGUSR2: "now"}
_RENEW_S = 1.0
#: Without a change for so long the asker is gone.
_STALE_S = 5.0


@dataclass
class Request:
    """Ours; `renew` is to be called often, `withdraw` at the end of the wait."""

    files: CheckpointFiles
    when: When
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
            said = {"when": self.when, "count": self._count}
            self.files.write(REQUEST, json.dumps(said).encode())
            self._renewed_at = now

    def withdraw(self) -> None:
        """We ask for nothing any more."""
        with suppress(CheckpointError):
            if self._renewed_at is not None:
                self.files.remove(REQUEST)


class Inbox:
    """What the active filter is asked for."""

    def __init__(self, files: CheckpointFiles) -> None:
        self._files = files
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
            return "now" if said["when"] == "now" else "commit"
        except (ValueError, KeyError, TypeError):
            return None

    def _read(self) -> bytes | None:
        try:
            return self._files.read(REQUEST) if self._files.exists(REQUEST) else None
        except BrokenEntryError:  # it is just being replaced
            return self._last
        except CheckpointError:
            if self._files.exists(REQUEST):
                raise
            return None


@contextmanager
def asked_by_signals(ask: Callable[[When], None]) -> Iterator[None]:
    """Within the block `ask` is called, in a signal handler, when SIGUSR1 or SIGUSR2 tells a standby to ask.

    To be used in the main thread.
    """
    with handled(_SIGNALS, lambda which, _frame: ask(_SIGNALS[signal.Signals(which)])):
        yield


_LOOK_S = 0.5
#: While a commit of continuous mode is waited for, or a moment at which a batch may be the last one.
_LOOK_CLOSELY_S = 0.05
#: A hanging Java answers nothing any more.
_LAST_LOOK_S = 2.0


class Handover:
    """Looks for a request while a query runs; `agreed` once the query has to end, or has ended, for who asks.

    An engine of batches ends by itself after its batch, see `BatchEnd`. Continuous mode has no such moment: its tasks
    read on while an epoch is committed. There the query is stopped as soon as a new commit is seen.
    """

    def __init__(
        self, spark: SparkSession, query: StreamingQuery, mode: Mode, files: CheckpointFiles, end: Callable[[], None]
    ) -> None:
        """`end` is called, in a thread of its own, when the query is to be stopped."""
        self._files, self._end = files, end
        self._batches = BatchEnd(spark, query) if mode.sends_progress else None  # as the engines of batches do
        self._inbox = Inbox(files)
        self._stop = threading.Event()
        self._is_asked = False
        self._commit: int | None = None
        self.agreed = False
        self._thread = threading.Thread(target=self._run, name="handover", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Looks no more; what was agreed stays. A query may end while it is still being asked to."""
        self._stop.set()
        self._thread.join(_LAST_LOOK_S)

    def _run(self) -> None:
        from py4j.protocol import Py4JError

        while not self._stop.wait(_LOOK_CLOSELY_S if self._is_asked and not self.agreed else _LOOK_S):
            try:
                self._look()
            except CheckpointError as error:
                _log.warning("handover_blind", reason=error)
            except (Py4JError, OSError):  # Java is gone, and we with it
                return

    def _look(self) -> None:
        when = self._inbox.look()
        if (when is not None) != self._is_asked:
            self._is_asked = when is not None
            _log.warning("handover_asked" if when else "handover_withdrawn", at=when or "none")
        if when == "now":
            self._agree()
        elif self._batches:
            self._let_end(self._batches, bool(when))
        elif when:
            newest = max(entry_numbers(self._files.names(COMMITS)), default=-1)
            if self._commit is not None and newest > self._commit:
                self._agree()
            self._commit = newest
        else:
            self._commit = None

    def _let_end(self, batches: BatchEnd, is_asked: bool) -> None:
        """Has an engine of batches end after its batch, or go on after all."""
        if is_asked and not self.agreed:
            self.agreed = batches.ask()
        elif self.agreed and not is_asked:
            self.agreed = False
            batches.take_back()

    def _agree(self) -> None:
        self.agreed = True
        self._stop.set()
        self._end()
