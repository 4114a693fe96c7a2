"""One program a checkpoint: two drivers on one would overwrite each other's logs, a repair what a driver writes.

On a local disk the kernel keeps the lock (`checkpoint_lock`), elsewhere Kafka's brokers do (`group_lock`).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.config import Settings, named
from fraud_filter.errors import UsageError

#: Spark's logs lie in folders beside it; it reads no other file there.
NAME = ".fraud-filter.lock"
_SETTING = named("checkpoint")


class Lock:
    """The lock of a checkpoint: one that is held already, or none."""

    #: Seconds between two looks of a standby.
    look_s = 0.05

    def __init__(self, descriptor: int | None = None) -> None:
        """`descriptor`: an open file for Spark's Java process to hold, too."""
        self.descriptor = descriptor

    @property
    def lost(self) -> str:
        """Why it is not ours any more, after it was."""
        return ""

    def hold(self, files: CheckpointFiles, stopping: Callable[[], bool] = lambda: False) -> None:
        """To be called before anything in the Java process behind `files` writes; `stopping` ends a wait."""

    def take(self, files: CheckpointFiles) -> bool:  # noqa: ARG002 - what another lock needs to know its name
        """Whether it is ours by now, for a standby that asks every `look_s` seconds; never waits for its holder.

        Raises:
            UsageError: Kafka's brokers don't allow it.
            CheckpointError: they don't answer.
        """
        return True

    def release(self) -> None:
        """Gives it up, so that another can `take` it; to be called when the Java process behind `files` has ended."""


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


@contextmanager
def checkpoint_lock(
    settings: Settings, who: str = "filter", *, named_by: str = _SETTING, standby: bool = False
) -> Iterator[Lock]:
    """The lock of a checkpoint, for as long as the block runs. On a local disk it is held from the beginning.

    There the kernel frees it when the last process that holds the file descriptor is gone, however it ended.

    Args:
        settings: `checkpoint` is locked; elsewhere by the brokers, if the query has to do with Kafka.
        who: what we are, for those who are refused.
        named_by: what gave the location, for our own messages.
        standby: it is not ours yet: the caller asks `take`.

    Raises:
        UsageError: another program holds it, or the file belongs to another user.
    """
    if settings.checkpoint_directory is None:
        if "kafka" not in (settings.source, settings.sink):
            yield Lock()
            return
        from fraud_filter.lock.group_lock import GroupLock

        with closing(GroupLock(settings, who, named_by)) as group_lock:
            yield group_lock
        return
    path = settings.checkpoint_directory / NAME
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UsageError(
            f"{named_by}: {path} can't be written: {error.strerror or error}; run as the user who made it, or remove "
            "it where nothing works on the checkpoint"
        ) from None
    try:
        lock = LocalLock(descriptor, who)
        if not standby and not lock.take():
            raise UsageError(f"{named_by}: {refusal(who, lock.holder, settings.checkpoint)}")
        yield lock
    finally:
        os.close(descriptor)


def refusal(who: str, holder: str, location: str) -> str:
    """What is told to who comes second."""
    article = "another" if holder.startswith(who) else "a"
    return f"{article} {holder} works on {location!r}; stop it, or take another location"
