"""One program a checkpoint: two drivers on one would overwrite each other's logs, a repair what a driver writes.

On a local disk the kernel keeps the lock (`checkpoint_lock`), elsewhere Kafka's brokers do (`group_lock`).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.config import Settings
from fraud_filter.errors import UsageError

#: Spark's logs lie in folders beside it; it reads no other file there.
NAME = ".fraud-filter.lock"
_SETTING = "setting checkpoint (--checkpoint, FRAUD_CHECKPOINT)"


class Lock:
    """The lock of a checkpoint: one that is held already, or none."""

    def __init__(self, descriptor: int | None = None) -> None:
        """`descriptor`: an open file for Spark's Java process to hold, too."""
        self.descriptor = descriptor

    @property
    def lost(self) -> str:
        """Why it is not ours any more, after it was."""
        return ""

    def hold(self, files: CheckpointFiles, stopping: Callable[[], bool] = lambda: False) -> None:
        """To be called before anything in the Java process behind `files` writes; `stopping` ends a wait."""


@contextmanager
def checkpoint_lock(settings: Settings, who: str = "filter", *, named_by: str = _SETTING) -> Iterator[Lock]:
    """The lock of a checkpoint, for as long as the block runs. On a local disk it is held from the beginning.

    There the kernel frees it when the last process that holds the file descriptor is gone, however it ended.

    Args:
        settings: `checkpoint` is locked; elsewhere by the brokers, if the query has to do with Kafka.
        who: what we are, for those who are refused.
        named_by: what gave the location, for our own messages.

    Raises:
        UsageError: another program holds it, or the file belongs to another user.
    """
    if settings.checkpoint_directory is None:
        if "kafka" not in (settings.source, settings.sink):
            yield Lock()
            return
        from fraud_filter.lock.group_lock import GroupLock

        with closing(GroupLock(settings, who, named_by)) as lock:
            yield lock
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
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 64).decode(errors="replace").strip() or "program"
            raise UsageError(f"{named_by}: {refusal(who, holder, settings.checkpoint)}") from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{who} (process {os.getpid()})\n".encode())
        yield Lock(descriptor)
    finally:
        os.close(descriptor)


def refusal(who: str, holder: str, location: str) -> str:
    """What is told to who comes second."""
    article = "another" if holder.startswith(who) else "a"
    return f"{article} {holder} works on {location!r}; stop it, or take another location"
