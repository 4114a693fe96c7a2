"""Repairs that are killed before each single change of the file system, and what the next repair makes of that."""

from __future__ import annotations

import shutil
from typing import Any

from fraud_filter.checkpoint.contents import read_contents
from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.checkpoint.plan import plan_repair
from fraud_filter.checkpoint.repair import STATE, repair
from fraud_filter.config import ModeName

_MOST = 300


class Killed(Exception):  # noqa: N818 - it stands for a kill
    """Where a process would have been killed: nothing of ours runs after it."""


class Dying(CheckpointFiles):
    """Dies before the Nth change of the file system, the single ones of a write included."""

    left = 0

    def _change(self, call: Any) -> Any:
        if self.left == 0:
            raise Killed
        self.left -= 1
        return super()._change(call)


class Careless(Dying):
    """A store on which nothing is atomic: a file is replaced by removing it and writing the new one in two halves, a
    directory is copied and removed file by file, and none is renamed.
    """

    def write(self, path: str, content: bytes) -> None:
        target = self._path(path)
        self._change(lambda: self._fs.delete(target, False))
        for length in (len(content) // 2, len(content)):
            self._change(lambda length=length: self._put(target, content[:length]))

    def remove(self, path: str) -> None:
        for each in reversed(self._below(path)):
            self._change(lambda each=each: self._fs.delete(self._path(each), True))

    def copy(self, source: str, target: str) -> None:
        for each in self._below(source):
            if not self._fs.getFileStatus(self._path(each)).isDirectory():
                self.write(f"{target}/{each}", self.read(each))

    def _below(self, path: str) -> list[str]:
        """It, and all in it, if it is there."""
        if not self.exists(path):
            return []
        inside = [*self.names(path, directories=True), *self.names(path)] if self._is_directory(path) else []
        return [path, *(each for name in inside for each in self._below(f"{path}/{name}"))]

    def _is_directory(self, path: str) -> bool:
        return bool(self._fs.getFileStatus(self._path(path)).isDirectory())


def open_as(kind: type[CheckpointFiles], spark: Any, location: str) -> Any:
    """The checkpoint's files by the session's Java."""
    return kind(spark._jvm, spark.sparkContext._gateway, spark._jsc.hadoopConfiguration(), location)


def logs(files: CheckpointFiles, folder: str = "") -> dict[str, bytes]:
    """Offset and commit entries, below `folder`."""
    names = [f"{log}/{name}" for log in ("offsets", "commits") for name in files.names(f"{folder}{log}")]
    return {name: files.read(f"{folder}{name}") for name in names if name.rpartition("/")[2].isdigit()}


def is_startable(files: CheckpointFiles, mode: ModeName) -> bool:
    return not plan_repair(read_contents(files), mode, 0).steps


def require_completed_after_each_kill(
    spark: Any, location: str, mode: ModeName, then: ModeName | None = None, kind: type[Dying] = Dying, step: int = 1
) -> int:
    """Kills a repair of a copy before each of its changes (or each `step`th); the next one must be whole.

    Args:
        then: another mode, for the next one.

    Returns:
        How many changes a repair makes.
    """
    original = logs(open_as(CheckpointFiles, spark, location))
    repaired: dict[str, bytes] = {}
    for changes in range(0, _MOST, step):
        copy = f"{location}-copy-{changes}"
        _copy(spark, location, copy)
        dying = open_as(kind, spark, copy)
        dying.left, died = changes, False
        try:
            repair(dying, mode, clock=lambda: 1_000_000_000)
        except Killed:
            died = True
        left = open_as(CheckpointFiles, spark, copy)
        done = repair(left, then or mode, clock=lambda: 1_000_000_000)
        assert is_startable(left, then or mode)
        kept = read_contents(left).kept_aside
        assert len(kept) == 1
        if then is None or died:
            assert logs(left, f"{kept[0]}/") == original
        assert STATE not in left.names()
        repaired = repaired or logs(left)
        if then is None:
            assert logs(left) == repaired
        if not died:
            assert then or done.plan.steps == ()
            return changes
    raise AssertionError("the repair never came to its end")


def _copy(spark: Any, source: str, target: str) -> None:
    if source.startswith("/"):  # Hadoop's own starts a process for each file's rights
        shutil.copytree(source, target)
        return
    util, path = spark._jvm.org.apache.hadoop.fs.FileUtil, spark._jvm.org.apache.hadoop.fs.Path
    conf = spark._jsc.hadoopConfiguration()
    fs = path(source).getFileSystem(conf)
    assert util.copy(fs, path(source), fs, path(target), False, conf)
