"""One program a checkpoint: two drivers on one would overwrite each other's logs, a repair what a driver writes.

On a local disk the kernel keeps the lock (`local_lock`), elsewhere Kafka's brokers do (`group_lock`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from fraud_filter.config import Settings, named
from fraud_filter.errors import UsageError
from fraud_filter.lock.local_lock import LocalLock
from fraud_filter.lock.lock import Lock
from fraud_filter.lock.shared_disk import is_local, kind

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
    directory = settings.checkpoint_directory
    if directory is None or not is_local(directory):
        if "kafka" not in (settings.source, settings.sink):
            if directory is None:
                yield Lock()
                return
            raise UsageError(
                f"{named_by}: {settings.checkpoint!r} is on a file system ({kind(directory)}) that other machines may "
                "share, and a query without Kafka has no lock there; give a directory on a local disk"
            )
        from fraud_filter.lock.group_lock import GroupLock

        with closing(GroupLock(settings, who, named_by, directory)) as group_lock:
            yield group_lock
        return
    with closing(LocalLock(directory, settings.checkpoint, who, named_by)) as lock:
        if not standby:
            lock.acquire()
        yield lock
