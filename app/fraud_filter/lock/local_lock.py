"""The lock of a checkpoint on a local disk: the kernel's."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from fraud_filter.checkpoint.files import CheckpointError, CheckpointFiles
from fraud_filter.errors import UsageError
from fraud_filter.lock.guard import Guard, identity, names
from fraud_filter.lock.lock import Lock, refusal

#: Spark's logs lie in folders beside it; it reads no other file there.
NAME = ".fraud-filter.lock"
_NO_END = float("inf")


class LocalLock(Lock):
    """A lock of the kernel: free as soon as the last process that holds the file's descriptor is gone.

    The kernel locks a file, programs meet at a path: the lock counts only while the path names the file. A guard kills
    Java within about a second when it does not, even when this program is stopped.
    """

    def __init__(self, directory: Path, location: str, who: str, named_by: str) -> None:
        """Opens the lock file without locking it; Java gets its descriptor at its start, hence before the lock.

        Args:
            directory: of the checkpoint, which its user calls `location`.
            who: what we are, for those who are refused.
            named_by: what gave the location, for our own messages.

        Raises:
            UsageError: the file can't be written.
        """
        self._directory = directory.absolute()
        self._path = self._directory / NAME
        self._location = location
        self._who = who
        self._named_by = named_by
        self._guard: Guard | None = None
        self._is_held = False
        self._file = self._open()
        self._place = _directory_of(self._directory)
        super().__init__(self._file)

    @property
    def lost(self) -> str:
        """As `Lock.lost`; also why a lock that is waited for can't become ours: others would lock another file."""
        if names(str(self._path), identity(os.fstat(self._file))):
            return ""
        return f"the lock of the checkpoint is lost: {self._path} was removed or replaced"

    def acquire(self) -> None:
        """Takes the lock of whatever the path names now.

        Raises:
            UsageError: another program holds it, or the file can't be written.
            CheckpointError: the file was removed or replaced in this moment.
        """
        self._reopen()
        if not self.take():
            raise UsageError(f"{self._named_by}: {refusal(self._who, self.holder, self._location)}")

    def renew(self) -> None:
        """As `Lock.renew`: opens the file that the path names now, and takes the lock again if it was ours.

        Raises:
            UsageError: another program holds it by now, or the file can't be written.
            CheckpointError: the directory is gone, or is another one: what the query wrote is not there.
        """
        if self.lost and _directory_of(self._directory) != self._place:
            raise CheckpointError(
                f"checkpoint {self._directory} was removed or replaced while the filter worked on it: put it back, or "
                "start the filter again to begin at starting_offsets"
            )
        if self._is_held and self.lost:
            self.acquire()
        else:
            self._reopen()

    def take(self, files: CheckpointFiles | None = None) -> bool:  # noqa: ARG002 - see `Lock`
        """As `Lock.take`. A process that has the same descriptor holds it from then on, too.

        Raises:
            CheckpointError: the path names another file, or none.
        """
        self._require()
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self._require()
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{self._who} (process {os.getpid()})\n".encode(), 0)
        self._is_held = True
        return True

    def hold(self, files: CheckpointFiles, stopping: Callable[[], bool] = lambda: False) -> None:  # noqa: ARG002
        """As `Lock.hold`: has a guard look after Java.

        Raises:
            CheckpointError: the path names another file, or none.
        """
        if not (self._guard and self._guard.pid == files.pid):
            self._unguard()
            self._guard = Guard(files.pid, _NO_END, path=self._path, file=self._file)
        self._require()

    def release(self) -> None:
        """As `Lock.release`: whoever else has the descriptor holds it no longer either."""
        self._unguard()
        self._is_held = False
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Ends the guard; the lock is free when Java has ended, too."""
        self._unguard()
        os.close(self._file)

    @property
    def holder(self) -> str:
        """What holds it, as it has written there."""
        return os.pread(self._file, 64, 0).decode(errors="replace").strip() or "program"

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UsageError(
                f"{self._named_by}: {self._path} can't be written: {error.strerror or error}; run as the user who made "
                "it, or remove it where nothing works on the checkpoint"
            ) from None

    def _reopen(self) -> None:
        if not self.lost:
            return
        self._unguard()
        os.close(self._file)
        self._file = self.descriptor = self._open()

    def _require(self) -> None:
        if reason := self.lost:
            raise CheckpointError(reason)

    def _unguard(self) -> None:
        if self._guard:
            self._guard.close()
            self._guard = None


def _directory_of(directory: Path) -> str:
    try:
        return identity(directory.stat())
    except OSError:
        return ""
