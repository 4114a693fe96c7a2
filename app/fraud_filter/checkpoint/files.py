"""The files of a checkpoint on any Hadoop file system, through a Java that PySpark started. Spark's types stop here.

On a local disk, HDFS and object stores every change is one atomic step, so that a process killed between two of them
leaves whole files. Of other file systems nothing is known; `repair` relies on it nowhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fraud_filter.checkpoint.entries import BrokenEntryError
from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.home import HOME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Of the entry `7`: `.7.crc`.
_CHECKSUM = re.compile(r"\.(\d+)\.crc")

#: Schemes of file systems where FileContext's rename replaces a file in one step. Hadoop's default, which object stores
#: and local disks have, removes the old one first. What is put into an object store is there whole or not at all.
_REPLACED_BY_RENAME = frozenset({"hdfs", "webhdfs", "swebhdfs", "viewfs"})

#: What file systems of Hadoop throw for a file that is not there.
_GONE = ("FileNotFoundException", "NoSuchFileException")


class CheckpointError(FraudFilterError):
    """The file system of a checkpoint refuses or can't be reached, perhaps for a while."""


class GoneError(CheckpointError):
    """A file is not there; a running query removes old entries between a listing and a look into them."""


class CheckpointFiles:
    """Reads and changes files below `location`; paths are relative to it, such as `offsets/7`.

    Every method raises CheckpointError when the file system refuses or can't be reached.
    """

    def __init__(self, jvm: Any, gateway: Any, conf: Any, location: str) -> None:
        """`conf` is a Hadoop Configuration."""
        self._jvm = jvm
        self._gateway = gateway
        self._conf = conf
        # Py4J asks Java for each part of such a name, which then searches all jars: milliseconds each time.
        self._make_path, self._read_all = jvm.org.apache.hadoop.fs.Path, jvm.org.apache.commons.io.IOUtils.toByteArray
        self.location = location
        self._root = self._parse(location)
        self._fs = self._try(lambda: self._root.getFileSystem(conf))

    def _parse(self, location: str) -> Any:
        from py4j.protocol import Py4JJavaError

        try:
            return self._make_path(location)
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
        """Names of the files (or directories) in a directory; none when there is no such directory.

        Raises:
            UsageError: it is a file.
        """
        if not self.exists(folder):
            return []
        path = self._path(folder)
        statuses = self._try(lambda: self._fs.listStatus(path))
        if len(statuses) == 1 and statuses[0].getPath().equals(self._fs.makeQualified(path)):
            raise UsageError(
                f"the checkpoint {self.location!r} is none: {folder or 'it'} is a file, where a directory belongs"
            )
        return sorted(str(status.getPath().getName()) for status in statuses if status.isDirectory() == directories)

    def read(self, path: str) -> bytes:
        """A file's bytes.

        Raises:
            BrokenEntryError: they don't fit their checksum, or it is a directory.
            GoneError: there is no such file.
        """
        from py4j.protocol import Py4JJavaError

        try:
            stream = self._try(lambda: self._fs.open(self._path(path)))
        except CheckpointError:
            if self._try(lambda: self._fs.isDirectory(self._path(path))):
                raise BrokenEntryError("it is a directory") from None
            raise
        try:
            return bytes(self._read_all(stream))
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() == "ChecksumException":
                raise BrokenEntryError("it does not fit its checksum") from None
            raise _failure(error, path) from None
        finally:
            stream.close()

    def write(self, path: str, content: bytes) -> None:
        """Writes or replaces a file: whole under another name first, then by one rename, where a rename can do that."""
        folder, slash, name = path.rpartition("/")
        target, aside = self._path(path), self._path(f"{folder}{slash}.{name}.repair.tmp")
        self._change(lambda: self._fs.mkdirs(self._path(folder)))
        self._forget_checksum(target)
        if self._is_checksummed:
            self._change(lambda: self._put(aside, content))
            raw = self._fs.getRawFileSystem()
            for renamed in ((aside, target), tuple(map(self._fs.getChecksumFile, (aside, target)))):
                self._change(lambda paths=renamed: raw.rename(*paths))
        elif self._fs.getUri().getScheme() in _REPLACED_BY_RENAME:
            self._change(lambda: self._put(aside, content))
            self._rename_over(aside, target)
        else:
            self._change(lambda: self._put(target, content))

    def _put(self, target: Any, content: bytes) -> None:
        stream = self._fs.create(target, True)
        stream.write(bytearray(content))
        stream.close()

    def remove(self, path: str) -> None:
        """Removes a file, or a directory with all that is in it; nothing happens when it is not there."""
        self._change(lambda: self._fs.delete(self._path(path), True))

    def drop_stray_checksums(self, folder: str) -> list[str]:
        """Removes checksums of numbered entries that are gone, and names them: Spark can't write over them.

        Hadoop's local file system keeps them in files of their own, which stay when an entry is deleted by hand.
        """
        if not self._is_checksummed:
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

    def _path(self, path: str) -> Any:
        return self._make_path(self._root, path) if path else self._root

    @property
    def _is_checksummed(self) -> bool:
        """Whether it keeps checksums in files beside each file, as Hadoop's local file system does."""
        from py4j.java_gateway import is_instance_of

        return bool(is_instance_of(self._gateway, self._fs, "org.apache.hadoop.fs.ChecksumFileSystem"))

    def _forget_checksum(self, target: Any) -> None:
        """Killed before there is a new one, the new file would stand beside the old one and could not be read."""
        if self._is_checksummed:
            checksum = self._fs.getChecksumFile(target)
            self._change(lambda: self._fs.getRawFileSystem().delete(checksum, False))

    def _rename_over(self, source: Any, target: Any) -> None:
        """Renames a file over another in one step (FileSystem.rename does not replace on HDFS)."""
        hadoop = self._jvm.org.apache.hadoop.fs
        options = self._gateway.new_array(hadoop.Options.Rename, 1)
        options[0] = hadoop.Options.Rename.OVERWRITE
        qualified = self._fs.makeQualified(source), self._fs.makeQualified(target)
        context = self._try(lambda: hadoop.FileContext.getFileContext(self._fs.getUri(), self._conf))
        self._change(lambda: context.rename(*qualified, options))

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
    kind = GoneError if cause.getClass().getSimpleName() in _GONE else CheckpointError
    reason = str(cause.getMessage() or cause.getClass().getSimpleName()).splitlines()[0]
    return kind(f"checkpoint {where}: {reason}")


_STOP_S = 10


def open_files(spark: SparkSession, location: str) -> CheckpointFiles:
    """The files of a checkpoint, or of a model, by the session's own Java.

    Raises:
        UsageError: its location is no path.
        CheckpointError: the file system refuses.
    """
    session: Any = spark._jsparkSession
    conf = session.sessionState().newHadoopConf()
    return CheckpointFiles(spark._jvm, spark.sparkContext._gateway, conf, location)


@contextmanager
def open_checkpoint(location: str, settings: Settings, keep_open: int | None = None) -> Iterator[CheckpointFiles]:
    """The files of the checkpoint at `location`, through a Java without a Spark session.

    `settings.spark_conf` may hold `spark.hadoop.*` for its file system.

    Args:
        keep_open: a file descriptor that the Java process is to hold, too.

    Raises:
        FraudFilterError: Java does not start, or no such file system is known.
    """
    from pyspark import SparkConf

    from fraud_filter.java import gateway

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # nothing of it is reached from elsewhere
    log4j = HOME / "spark/conf/log4j2.properties"
    conf = SparkConf().set("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={log4j.as_uri()}")
    conf.setAll(list(settings.spark_conf.items()))
    java = gateway.launch(conf, keep_open)
    try:
        jvm = java.jvm
        hadoop = jvm.org.apache.spark.deploy.SparkHadoopUtil.get().newConfiguration(jvm.org.apache.spark.SparkConf())
        yield CheckpointFiles(jvm, java, hadoop, location)
    finally:
        java.shutdown()
        java.proc.stdin.close()  # Java ends at the end of its input
        java.proc.wait(_STOP_S)
