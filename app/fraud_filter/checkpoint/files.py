"""The files of a checkpoint on any Hadoop file system, through a Java that PySpark started. Spark's types stop here.

Every change is one atomic step of the file system, so that a process killed between two of them leaves whole files.
"""

from __future__ import annotations

import re
from typing import Any

from fraud_filter.checkpoint.entries import BrokenEntryError
from fraud_filter.errors import FraudFilterError, UsageError

#: Of the entry `7`: `.7.crc`.
_CHECKSUM = re.compile(r"\.(\d+)\.crc")


class CheckpointError(FraudFilterError):
    """The file system of a checkpoint refuses or can't be reached, perhaps for a while."""


class CheckpointFiles:
    """Reads and changes files below `location`; paths are relative to it, such as `offsets/7`.

    Every method raises CheckpointError when the file system refuses or can't be reached.
    """

    def __init__(self, jvm: Any, gateway: Any, conf: Any, location: str) -> None:
        """`conf` is a Hadoop Configuration."""
        self._jvm = jvm
        self._gateway = gateway
        self._conf = conf
        self.location = location
        self._root = self._parse(location)
        self._fs = self._try(lambda: self._root.getFileSystem(conf))

    def _parse(self, location: str) -> Any:
        from py4j.protocol import Py4JJavaError

        try:
            return self._jvm.org.apache.hadoop.fs.Path(location)
        except Py4JJavaError as error:
            raise UsageError(
                f"the checkpoint {location!r} is no path ({error.java_exception.getMessage()}): give one such as "
                "/data/checkpoint or s3a://bucket/checkpoint"
            ) from None

    @property
    def pid(self) -> int:
        """The Java process that reads and writes for us."""
        return int(self._gateway.proc.pid)

    @property
    def qualified(self) -> str:
        """The location with scheme and authority, such as `hdfs://names:8020/checkpoint`."""
        return str(self._fs.makeQualified(self._root).toString())

    def exists(self, path: str = "") -> bool:
        """Whether there is such a file or directory."""
        return bool(self._try(lambda: self._fs.exists(self._path(path))))

    def names(self, folder: str = "", *, directories: bool = False) -> list[str]:
        """Names of the files (or directories) in a directory; none when there is no such directory."""
        if not self.exists(folder):
            return []
        statuses = self._try(lambda: self._fs.listStatus(self._path(folder)))
        return sorted(str(status.getPath().getName()) for status in statuses if status.isDirectory() == directories)

    def read(self, path: str) -> bytes:
        """A file's bytes.

        Raises:
            BrokenEntryError: they don't fit their checksum.
        """
        from py4j.protocol import Py4JJavaError

        stream = self._try(lambda: self._fs.open(self._path(path)))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() == "ChecksumException":
                raise BrokenEntryError("it does not fit its checksum") from None
            raise _failure(error, path) from None
        finally:
            stream.close()

    def write(self, path: str, content: bytes) -> None:
        """Writes or replaces a file: whole under another name first, then by one rename."""
        folder, _, name = path.rpartition("/")
        aside = self._path(f"{folder}/.{name}.repair.tmp")

        def put(target: Any) -> None:
            stream = self._fs.create(target, True)
            stream.write(bytearray(content))
            stream.close()

        self._change(lambda: self._fs.mkdirs(self._path(folder)))
        self._change(lambda: put(aside))
        self._forget_checksum(path)
        if not self._rename_over(aside, self._path(path)):
            self._change(lambda: put(self._path(path)))  # a store without renames puts a file in one go
            self._change(lambda: self._fs.delete(aside, False))

    def remove(self, path: str) -> None:
        """Removes a file, or a directory with all that is in it; nothing happens when it is not there."""
        self._change(lambda: self._fs.delete(self._path(path), True))

    def drop_stray_checksums(self, folder: str) -> list[str]:
        """Removes checksums of numbered entries that are gone, and names them: Spark can't write over them.

        Hadoop's local file system keeps them in files of their own, which stay when an entry is deleted by hand.
        """
        from py4j.java_gateway import is_instance_of

        if not is_instance_of(self._gateway, self._fs, "org.apache.hadoop.fs.ChecksumFileSystem"):
            return []
        entries = set(self.names(folder))
        raw = self._fs.getRawFileSystem()
        statuses = self._try(lambda: raw.listStatus(self._path(folder))) if self.exists(folder) else ()
        found = (_CHECKSUM.fullmatch(str(status.getPath().getName())) for status in statuses)
        stray = sorted(match[0] for match in found if match and match[1] not in entries)
        for name in stray:
            self._change(lambda name=name: raw.delete(self._path(f"{folder}/{name}"), False))
        return stray

    def copy(self, source: str, target: str) -> None:
        """Copies a file or directory to below the directory `target`; broken files as they are."""
        copy = self._jvm.org.apache.hadoop.fs.FileUtil.copy
        self._change(lambda: self._fs.mkdirs(self._path(target)))
        self._fs.setVerifyChecksum(False)
        try:
            self._change(lambda: copy(self._fs, self._path(source), self._fs, self._path(target), False, self._conf))
        finally:
            self._fs.setVerifyChecksum(True)

    def rename(self, source: str, target: str) -> None:
        """Renames a directory; `target` is not there yet."""
        if not self._change(lambda: self._fs.rename(self._path(source), self._path(target))):
            raise CheckpointError(f"checkpoint {self.location}: {source} can't be renamed to {target}")

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, path) if path else self._root

    def _forget_checksum(self, path: str) -> None:
        """Hadoop's local file system renames a file first and its checksum then: killed in between, the new file would
        stand beside the old checksum and could not be read. Without one it can.
        """
        from py4j.java_gateway import is_instance_of

        if is_instance_of(self._gateway, self._fs, "org.apache.hadoop.fs.ChecksumFileSystem"):
            checksum = self._fs.getChecksumFile(self._path(path))
            self._change(lambda: self._fs.getRawFileSystem().delete(checksum, False))

    def _rename_over(self, source: Any, target: Any) -> bool:
        """Renames a file over another in one step (FileContext: FileSystem.rename does not replace on every store)."""
        from py4j.protocol import Py4JJavaError

        hadoop = self._jvm.org.apache.hadoop.fs
        options = self._gateway.new_array(hadoop.Options.Rename, 1)
        options[0] = hadoop.Options.Rename.OVERWRITE
        try:
            context = hadoop.FileContext.getFileContext(self._fs.getUri(), self._conf)
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() == "UnsupportedFileSystemException":
                return False
            raise _failure(error, self.location) from None
        qualified = self._fs.makeQualified(source), self._fs.makeQualified(target)
        self._change(lambda: context.rename(*qualified, options))
        return True

    def _change(self, call: Any) -> Any:
        """One change of the file system. All of them go through here."""
        return self._try(call)

    def _try(self, call: Any) -> Any:
        from py4j.protocol import Py4JJavaError

        try:
            return call()
        except Py4JJavaError as error:
            raise _failure(error, self.location) from None


def _failure(error: Any, where: str) -> CheckpointError:
    cause = error.java_exception
    reason = str(cause.getMessage() or cause.getClass().getSimpleName()).splitlines()[0]
    return CheckpointError(f"checkpoint {where}: {reason}")
