"""One program a checkpoint: two drivers on one would overwrite each other's logs, a repair what a driver writes.

On a local disk the kernel keeps the lock (`LocalLock`), elsewhere Kafka's brokers do (`group_lock`). What is not known
as a local disk may be shared with other machines: NFS, SMB, FUSE, Ceph.
"""

from __future__ import annotations

import fcntl
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psutil

from fraud_filter.checkpoint.files import CheckpointError, CheckpointFiles
from fraud_filter.config import Settings, named
from fraud_filter.errors import UsageError
from fraud_filter.lock.guard import Guard, identity, names

#: File systems of which one kernel has all the locks. What is not named here may be shared between machines.
_LOCAL = frozenset({
    "apfs", "bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "hfs", "jfs", "overlay", "ramfs", "reiserfs", "rootfs",
    "tmpfs", "xfs", "zfs",
})  # fmt: skip

#: Holds the name of the checkpoint's lock, the same for every machine, wherever it mounts the file system.
ID_FILE = ".fraud-filter.id"

#: Seconds that another program may take between creating the file and writing it.
_WRITTEN_S = 5.0


def kind(directory: Path) -> str:
    """The type of the file system that a path is on, such as `nfs4`; "unknown" where the system does not tell."""
    path = directory.resolve()
    found, longest = "unknown", -1
    for mount in psutil.disk_partitions(all=True):
        length = len(Path(mount.mountpoint).parts)
        if length >= longest and path.is_relative_to(mount.mountpoint):  # of two on one place the later one is seen
            found, longest = mount.fstype, length
    return found


def is_local(directory: Path) -> bool:
    """Whether only this machine writes there."""
    return kind(directory) in _LOCAL


def read_id(directory: Path) -> str:
    """The id in the checkpoint; "" where there is none, or it can't be read."""
    with suppress(OSError, UnicodeDecodeError):
        return (directory / ID_FILE).read_text(encoding="utf-8").strip()
    return ""


def make_id(directory: Path) -> str:
    """The id in the checkpoint, which is made where there is none.

    Raises:
        CheckpointError: the file can't be written, or stays empty.
    """
    file = directory / ID_FILE
    try:
        with suppress(FileExistsError), file.open("x", encoding="utf-8") as new:
            new.write(f"{uuid.uuid4().hex}\n")
    except OSError as error:
        raise CheckpointError(f"checkpoint {directory}: {file} can't be written: {error.strerror or error}") from None
    end = time.monotonic() + _WRITTEN_S
    while not (found := read_id(directory)):
        if time.monotonic() > end:
            raise CheckpointError(f"checkpoint {directory}: {file} is empty; remove it where nothing works on it")
        time.sleep(0.1)
    return found


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

    def renew(self) -> None:
        """Has `descriptor` be one that can be locked; to be called before each start of a Java process."""

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


def refusal(who: str, holder: str, location: str) -> str:
    """What is told to who comes second."""
    article = "another" if holder.startswith(who) else "a"
    return f"{article} {holder} works on {location!r}; stop it, or take another location"


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
