"""The active filter's part of a handover: its query ends at a commit, or at once, when a warm filter asks for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from fraud_filter.checkpoint.contents import entry_numbers
from fraud_filter.checkpoint.entries import COMMITS
from fraud_filter.checkpoint.files import CheckpointError, CheckpointFiles
from fraud_filter.modes import Mode
from fraud_filter.supervisor.relay.batch_end import BatchEnd
from fraud_filter.supervisor.relay.request import Inbox

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_log = logging.getLogger(__name__)
_LOOK_S = 0.5
#: While a commit of continuous mode is waited for, or a moment at which a batch may be the last one.
_LOOK_CLOSELY_S = 0.05
#: A hanging Java answers nothing any more.
_LAST_LOOK_S = 2.0


class HandingOver:
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
                _log.warning("event=handover_blind reason=%r", str(error))
            except (Py4JError, OSError):  # Java is gone, and we with it
                return

    def _look(self) -> None:
        when = self._inbox.look()
        if (when is not None) != self._is_asked:
            self._is_asked = when is not None
            _log.warning("event=%s at=%s", "handover_asked" if when else "handover_withdrawn", when or "none")
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
