"""One filter a checkpoint: two drivers on one would overwrite each other's logs."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from fraud_filter.config import Settings
from fraud_filter.errors import UsageError

#: Spark's logs lie in folders beside it; it reads no other file there.
NAME = ".fraud-filter.lock"


@contextmanager
def checkpoint_lock(settings: Settings) -> Iterator[int | None]:
    """Holds the lock of a checkpoint on a local disk; on other file systems Spark alone notices a second query.

    The kernel frees it when the last process that holds the file descriptor is gone, however it ended.

    Returns:
        The descriptor, for Spark's Java process to hold it too; None where there is no lock.

    Raises:
        UsageError: another filter holds it, or the file belongs to another user.
    """
    directory = settings.checkpoint_directory
    if directory is None:
        yield None
        return
    path = directory / NAME
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UsageError(
            f"setting checkpoint (--checkpoint, FRAUD_CHECKPOINT): {path} can't be written: {error.strerror or error}; "
            "run the filter as the user who made it, or remove it where no filter works on the checkpoint"
        ) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            raise UsageError(
                f"setting checkpoint (--checkpoint, FRAUD_CHECKPOINT): another filter (process {holder}) works on "
                f"{settings.checkpoint!r}; stop it, or give this one a location of its own"
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield descriptor
    finally:
        os.close(descriptor)
