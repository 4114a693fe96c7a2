"""The lock of a checkpoint on a local disk: the kernel's."""

from __future__ import annotations

import fcntl
import os

from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.lock.lock import Lock

#: Spark's logs lie in folders beside it; it reads no other file there.
NAME = ".fraud-filter.lock"


class LocalLock(Lock):
    """A lock of the kernel: free as soon as the last process that holds the file's descriptor is gone."""

    def __init__(self, descriptor: int, who: str) -> None:
        """`descriptor`: of the open lock file, not yet locked; Java gets it at its start, hence before the lock."""
        super().__init__(descriptor)
        self._file = descriptor
        self._who = who

    def take(self, files: CheckpointFiles | None = None) -> bool:  # noqa: ARG002 - see `Lock`
        """As `Lock.take`. A process that has the same descriptor holds it from then on, too."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{self._who} (process {os.getpid()})\n".encode(), 0)
        return True

    def release(self) -> None:
        """As `Lock.release`: whoever else has the descriptor holds it no longer either."""
        fcntl.flock(self._file, fcntl.LOCK_UN)

    @property
    def holder(self) -> str:
        """What holds it, as it has written there."""
        return os.pread(self._file, 64, 0).decode(errors="replace").strip() or "program"
