"""Query runs that fail one after the other without progress."""

from __future__ import annotations

import time

from fraud_filter.checkpoint.progress import Offsets

#: So many failures in a row are a loop.
LOOP = 3


class Streak:
    """Counts them. A run makes progress when it commits something new, or runs, or waits as a standby, for `reset_s`
    seconds."""

    def __init__(self, reset_s: float) -> None:
        self._reset_s = reset_s
        self._count = 0
        self._before: Offsets = {}
        self._committed: Offsets = {}
        self._started_at: float | None = None
        #: Why the last run failed.
        self.cause = ""
        #: Whether the last one failed for something that is away, such as a broker: our own restart changes nothing.
        self.waits_for_others = False

    def begin(self) -> None:
        """A run begins; it has no query yet."""
        self._before, self._started_at = self._committed, None

    def start(self) -> None:
        """The query runs, or is ready to as a standby."""
        self._started_at = time.monotonic()

    def commit(self, offsets: Offsets) -> None:
        """The newest committed offsets, over all runs."""
        self._committed = offsets

    def fail(self, count: int, cause: str, *, waits_for_others: bool) -> None:
        """The run has failed; it is number `count` without progress."""
        self._count, self.cause, self.waits_for_others = count, cause, waits_for_others
        self.begin()

    @property
    def progress(self) -> bool:
        """Whether the run, which may have ended, made progress."""
        ran_s = time.monotonic() - self._started_at if self._started_at is not None else 0.0
        return self._committed != self._before or ran_s > self._reset_s

    @property
    def failures(self) -> int:
        """How many runs in a row failed without progress; 0 once the present one makes some."""
        return 0 if self.progress else self._count
