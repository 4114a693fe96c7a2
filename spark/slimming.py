"""Takes out of a pyspark package what no program of the images loads. The images' build runs it.

What stays serves streaming and batch queries, their state, and Spark ML, on a standalone cluster.
"""

from __future__ import annotations

import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

#: Jars of what is not used here, by what it is.
UNNEEDED = {
    "clusters of Kubernetes and YARN": (
        *("kubernetes-*", "spark-kubernetes_*", "spark-yarn_*"),
        *("vertx-*", "volcano-*", "zjsonpatch-*"),
    ),
    "Hive's metastore and its database": (
        *("HikariCP-*", "datanucleus-*", "derby*", "hive-[!s]*", "hive-se*", "hive-shims-*", "javax.jdo-*"),
        *("javolution-*", "jdo-api-*", "jpam-*", "jta-*", "libfb303-*", "libthrift-*", "spark-hive*"),
        "transaction-api-*",
    ),
    "the server of Spark Connect": ("spark-connect_*", "spark-pipelines_*"),
    "Scala's shell with its compiler": ("jline-*", "scala-compiler-*", "spark-repl_*"),
}
#: Folders of the package beside its jars.
FOLDERS = ("R", "data", "examples", "jars/connect-repl", "licenses", "sbin")
#: Jars with native code for a dozen platforms each: at most this one's is loaded.
_NATIVE = ("lz4-java-*", "rocksdbjni-*", "snappy-java-*", "zstd-jni-*")
_LIBRARIES = (".a", ".dll", ".dylib", ".jnilib", ".so")
#: How they name our platforms, by the name that the kernel has for the processor.
_OURS = {"x86_64": ("amd64", "linux64.", "Linux/x86_64/"), "aarch64": ("aarch64",)}
_SIGNATURES = ("META-INF/*.SF", "META-INF/*.RSA", "META-INF/*.DSA")
#: Entries of jars that only make each start slower, by the jar.
_SLOW = {
    # Java checks a signed jar as it reads it, and takes no class of it into an archive (`class_archive`).
    "commons-compiler-*": _SIGNATURES,
    "janino-*": _SIGNATURES,
    # Each session would make ML's functions known, by Scala's reflection, which takes seconds. `model.scoring` does it
    # where there is a model.
    "spark-mllib_*": ("META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider",),
}


def slim(package: Path, machine: str) -> int:
    """Removes what is not needed from the folder of a pyspark package; returns how many bytes that saves.

    Args:
        package: the folder that has `jars`.
        machine: the processor's name, as `uname -m` prints it.
    """
    before = _size(package)
    for folder in FOLDERS:
        shutil.rmtree(package / folder, ignore_errors=True)
    for jar in sorted((package / "jars").glob("*.jar")):
        if is_unneeded(jar.name) or _is_foreign_netty(jar.name, machine):
            jar.unlink()
        elif _matches(jar.name, _NATIVE):
            _strip(jar, lambda entry: entry.endswith(_LIBRARIES) and not _is_ours(entry, machine))
        for pattern, entries in _SLOW.items():
            if fnmatch(jar.name, pattern):
                _strip(jar, partial(_matches, patterns=entries))
    return before - _size(package)


def is_unneeded(jar: str) -> bool:
    """Whether the jar of this file name is one of those that are not used here."""
    return any(_matches(jar, patterns) for patterns in UNNEEDED.values())


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _is_foreign_netty(jar: str, machine: str) -> bool:
    """Netty has a jar for each platform, with the platform at the end of its name."""
    netty = machine.replace("aarch64", "aarch_64")
    is_native = any(f"-{system}-" in jar for system in ("linux", "osx", "windows"))
    return jar.startswith("netty-") and is_native and f"-linux-{netty}." not in jar


def _strip(jar: Path, is_left_out: Callable[[str], bool]) -> None:
    """Leaves entries out of a jar, such as the native code of other platforms. Java reads the jar as before."""
    slimmer = jar.with_suffix(".slim")
    with zipfile.ZipFile(jar) as full, zipfile.ZipFile(slimmer, "w", zipfile.ZIP_DEFLATED) as slimmed:
        for entry in full.infolist():
            if not is_left_out(entry.filename):
                slimmed.writestr(entry, full.read(entry))
    slimmer.replace(jar)


def _is_ours(library: str, machine: str) -> bool:
    is_other = any(word in library for word in ("musl", "android", "freebsd", "FreeBSD", "darwin", "Mac", "win"))
    return not is_other and any(word in library for word in _OURS[machine])


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in _files(folder))


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.is_file())


if __name__ == "__main__":
    print(f"{slim(Path(sys.argv[1]), sys.argv[2]) / 1e6:.0f} MB less")  # noqa: T201 - the build's log
