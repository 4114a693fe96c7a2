"""The lock of a checkpoint: where its file lies, and what is told when it can't be had."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fraud_filter.checkpoint.files import CheckpointError
from fraud_filter.config import load
from fraud_filter.errors import UsageError
from fraud_filter.lock.checkpoint_lock import (
    ID_FILE,
    NAME,
    LocalLock,
    Lock,
    checkpoint_lock,
    is_local,
    kind,
    make_id,
    read_id,
)
from fraud_filter.lock.group_lock import group_of


@pytest.mark.parametrize(
    ("location", "directory"),
    [
        ("/data/run#1/check?point", "/data/run#1/check?point"),
        ("file:/data/run#1", "/data/run#1"),
        ("file:///data/run", "/data/run"),
        ("relative/run", "relative/run"),
        ("s3a://bucket/run", None),
        ("hdfs:/run", None),
    ],
)
def test_a_directory_of_this_machine_is_known_by_its_location(location: str, directory: str | None) -> None:
    found = load({"checkpoint": location}).checkpoint_directory
    assert found == (None if directory is None else Path(directory))


def test_a_path_on_another_default_file_system_is_none_of_this_machine() -> None:
    conf = {"spark.hadoop.fs.defaultFS": "hdfs://names:8020"}
    assert load({"checkpoint": "/data/run", "spark_conf": conf}).checkpoint_directory is None
    assert load({"checkpoint": "file:/data/run", "spark_conf": conf}).checkpoint_directory == Path("/data/run")


def test_one_checkpoint_has_one_group_however_it_is_written() -> None:
    location = "hdfs://names:8020/data/run"
    assert re.fullmatch("fraud-filter-lock-[0-9a-f]{32}", group_of(location))
    assert {group_of(same) for same in ("hdfs://names/data/run", f"{location}/", "hdfs://NAMES:8020/data/run")} == {
        group_of(location)
    }
    others = ("hdfs://names:8020/data/Run", "hdfs://names:9000/data/run", "s3a://names/data/run", "file:/data/run")
    assert len({group_of(other) for other in (location, *others)}) == 5


def test_the_lock_lies_in_the_checkpoint_and_is_held_once(tmp_path: Path) -> None:
    folder = tmp_path / "run#1"
    folder.mkdir()
    settings = load({"checkpoint": str(folder)})
    with checkpoint_lock(settings):
        assert (folder / NAME).exists()
        with pytest.raises(UsageError, match=r"another filter .* works on"), checkpoint_lock(settings):
            pass
        refused = r"argument PATH: a filter \(process \d+\) works on .*; stop it, or take another location"
        with pytest.raises(UsageError, match=refused), checkpoint_lock(settings, "repair", named_by="argument PATH"):
            pass


def java_with(lock: Lock) -> subprocess.Popen[bytes]:
    """A process that has the lock file as Java has it, which is started before the lock is ours."""
    assert lock.descriptor is not None
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(lock.descriptor,))


def test_a_standby_gets_the_lock_when_the_last_process_that_holds_it_is_gone(tmp_path: Path) -> None:
    settings = load({"checkpoint": str(tmp_path)})
    with checkpoint_lock(settings, standby=True) as one, checkpoint_lock(settings, standby=True) as other:
        assert isinstance(one, LocalLock)
        assert isinstance(other, LocalLock)
        java = java_with(one)
        assert one.take()
        assert one.take()
        assert not other.take()
        with pytest.raises(UsageError, match=r"another filter \(process \d+\) works on"), checkpoint_lock(settings):
            pass
        java.communicate(b"\n")
        assert not other.take()
        one.release()
        assert other.take()
        assert not one.take()


def test_an_orphaned_java_keeps_the_lock_that_its_program_took_after_its_start(tmp_path: Path) -> None:
    settings = load({"checkpoint": str(tmp_path)})
    with checkpoint_lock(settings, standby=True) as other:
        assert isinstance(other, LocalLock)
        with checkpoint_lock(settings, standby=True) as one:
            assert isinstance(one, LocalLock)
            java = java_with(one)
            assert one.take()
        assert not other.take()  # our descriptor is closed, Java's is open
        java.communicate(b"\n")
        assert other.take()


def test_a_lock_that_can_not_be_written_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    message = r"setting checkpoint .*can't be written: Is a directory; run as the user"
    with pytest.raises(UsageError, match=message), checkpoint_lock(load({"checkpoint": str(tmp_path)})):
        pass


def remove_file(run: Path) -> None:
    (run / NAME).unlink()


def replace_file(run: Path) -> None:
    shutil.copy2(run / NAME, run / "copy")
    (run / "copy").rename(run / NAME)


def remove_directory(run: Path) -> None:
    shutil.rmtree(run)


def rename_directory(run: Path) -> None:
    run.rename(run.with_name("away"))


def swap_directory(run: Path) -> None:
    rename_directory(run)
    shutil.copytree(run.with_name("away"), run)


CHANGES = [remove_file, replace_file, remove_directory, rename_directory, swap_directory]


@dataclass(frozen=True)
class Files:
    """What a lock asks of the files of a checkpoint."""

    pid: int


def files_of(process: subprocess.Popen[bytes]) -> Any:
    return cast(Any, Files(process.pid))


@pytest.mark.parametrize("change", CHANGES)
def test_java_is_killed_when_the_path_does_not_name_the_locked_file(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with checkpoint_lock(load({"checkpoint": str(run)})) as lock:
        java = java_with(lock)
        lock.hold(files_of(java))
        assert lock.lost == ""
        change(run)
        assert "was removed or replaced" in lock.lost
        with pytest.raises(CheckpointError, match="was removed or replaced"):
            lock.hold(files_of(java))
        assert java.wait(10) == -9


@pytest.mark.parametrize("change", CHANGES)
def test_a_standby_notices_that_the_path_names_another_file(tmp_path: Path, change: Callable[[Path], None]) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with checkpoint_lock(load({"checkpoint": str(run)}), standby=True) as lock:
        change(run)
        with pytest.raises(CheckpointError, match="was removed or replaced"):
            lock.take(files_of(java_with(lock)))


def test_a_symbolic_link_that_leads_elsewhere_loses_the_lock(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    link = tmp_path / "run"
    link.symlink_to("one")
    with checkpoint_lock(load({"checkpoint": str(link)})) as lock:
        with (
            pytest.raises(UsageError, match="another filter"),
            checkpoint_lock(load({"checkpoint": f"{tmp_path}/one"})),
        ):
            pass
        link.unlink()
        link.symlink_to("other")
        assert lock.lost


def test_after_a_loss_the_new_file_is_locked_unless_another_holds_it(tmp_path: Path) -> None:
    settings = load({"checkpoint": str(tmp_path)})
    with checkpoint_lock(settings) as first:
        remove_file(tmp_path)
        first.renew()
        assert first.lost == ""
        with pytest.raises(UsageError, match="another filter"), checkpoint_lock(settings):
            pass
        remove_file(tmp_path)
        with checkpoint_lock(settings), pytest.raises(UsageError, match="another filter"):
            first.renew()


def test_a_restart_waits_for_a_directory_that_is_gone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with checkpoint_lock(load({"checkpoint": str(run)})) as lock:
        rename_directory(run)
        with pytest.raises(CheckpointError, match="put it back"):
            lock.renew()
        run.with_name("away").rename(run)
        lock.renew()
        assert lock.lost == ""


@pytest.mark.parametrize(
    ("mounted", "found", "local"),
    [
        ({"/": "ext4"}, "ext4", True),
        ({"/": "ext4", "{run}": "nfs4"}, "nfs4", False),
        ({"/": "nfs4", "{run}": "xfs"}, "xfs", True),
        ({"{run}": "fuse.sshfs", "/": "ext4"}, "fuse.sshfs", False),
        ({"/": "fuse.brand-new"}, "fuse.brand-new", False),
        ({"/": "9p"}, "9p", False),
        ({}, "unknown", False),
    ],
)
def test_only_known_local_file_systems_count_as_local(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounted: dict[str, str], found: str, local: bool
) -> None:
    mounts = [SimpleNamespace(mountpoint=at.format(run=tmp_path), fstype=kind) for at, kind in mounted.items()]
    monkeypatch.setattr("psutil.disk_partitions", lambda all: mounts)  # noqa: ARG005 - the library's name
    assert (kind(tmp_path / "run"), is_local(tmp_path / "run")) == (found, local)


def test_a_shared_path_without_kafka_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psutil.disk_partitions", lambda all: [])  # noqa: ARG005 - the library's name
    settings = load({"checkpoint": str(tmp_path), "source": "rate", "sink": "console"})
    with pytest.raises(UsageError, match=r"file system \(unknown\) that other machines may share"):
        checkpoint_lock(settings).__enter__()


def test_the_id_of_a_shared_checkpoint_is_made_once(tmp_path: Path) -> None:
    made = make_id(tmp_path)
    assert make_id(tmp_path) == read_id(tmp_path) == made
    (tmp_path / ID_FILE).unlink()
    assert make_id(tmp_path) != made
