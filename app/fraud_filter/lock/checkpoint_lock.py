"""One program a checkpoint: two drivers on one would overwrite each other's logs, a repair what a driver writes.

On a local disk the kernel keeps the lock (`local_lock`), elsewhere Kafka's brokers do (`group_lock`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager

from fraud_filter.config import Settings, named
from fraud_filter.errors import UsageError
from fraud_filter.lock.local_lock import NAME, LocalLock
from fraud_filter.lock.lock import Lock, refusal

_SETTING = named("checkpoint")


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
