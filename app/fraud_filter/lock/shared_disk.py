"""Checkpoints at a path whose file system other machines may share: NFS, SMB, FUSE, Ceph and all that is not known."""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from pathlib import Path

import psutil

from fraud_filter.checkpoint.files import CheckpointError

#: File systems of which one kernel has all the locks. What is not named here may be shared between machines.
_LOCAL = frozenset({
    "apfs", "bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "hfs", "jfs", "overlay", "ramfs", "reiserfs", "rootfs",
    "tmpfs", "xfs", "zfs",
})  # fmt: skip
#: Holds the name of the checkpoint's lock, the same for every machine, wherever it mounts the file system.
NAME = ".fraud-filter.id"
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
        return (directory / NAME).read_text(encoding="utf-8").strip()
    return ""


def make_id(directory: Path) -> str:
    """The id in the checkpoint, which is made where there is none.

    Raises:
        CheckpointError: the file can't be written, or stays empty.
    """
    file = directory / NAME
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
