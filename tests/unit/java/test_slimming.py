"""What the images leave out of Spark: what the patterns name is there, and what is needed stays."""

from __future__ import annotations

import importlib.util
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest

from spark.slimming import UNNEEDED, slim

SPEC = importlib.util.find_spec("pyspark")
assert SPEC is not None
assert SPEC.origin is not None
FOLDER = Path(SPEC.origin).parent / "jars"
JARS = sorted(file.name for file in FOLDER.glob("*.jar"))

_SIGNATURES = ("META-INF/DUMMY.SF", "META-INF/DUMMY.DSA")
SLOW = {
    "commons-compiler-1.jar": _SIGNATURES,
    "janino-1.jar": _SIGNATURES,
    "spark-mllib_1.jar": ("META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider",),
}


@pytest.mark.parametrize("pattern", [pattern for patterns in UNNEEDED.values() for pattern in patterns])
def test_every_pattern_names_a_jar_of_this_spark(pattern: str) -> None:
    assert any(fnmatch(jar, pattern) for jar in JARS)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A small pyspark package."""
    (tmp_path / "jars").mkdir()
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples/pi.py").write_text("3")
    for name in ("derby-10.jar", "netty-native-1-linux-x86_64.jar", "netty-native-1-linux-aarch_64.jar", "other.jar"):
        (tmp_path / "jars" / name).write_bytes(b"jar")
    with zipfile.ZipFile(tmp_path / "jars/rocksdbjni-9.jar", "w") as jar:
        for library in ("linux64.so", "linux64-musl.so", "linux-aarch64.so", "osx-arm64.jnilib", "win64.dll"):
            jar.writestr(f"librocksdbjni-{library}", "code" * 100)
        jar.writestr("org/rocksdb/RocksDB.class", "class")
    for name, entries in SLOW.items():
        with zipfile.ZipFile(tmp_path / "jars" / name, "w") as jar:
            for entry in (*entries, "META-INF/MANIFEST.MF", "a.class"):
                jar.writestr(entry, "text")
    return tmp_path


@pytest.mark.parametrize(("machine", "library"), [("x86_64", "linux64.so"), ("aarch64", "linux-aarch64.so")])
def test_one_platform_s_native_code_stays(package: Path, machine: str, library: str) -> None:
    assert slim(package, machine) > 0
    netty = f"netty-native-1-linux-{machine.replace('aarch64', 'aarch_64')}.jar"
    assert {file.name for file in package.rglob("*") if file.is_file()} == {
        *(netty, *SLOW, "other.jar", "rocksdbjni-9.jar")
    }
    with zipfile.ZipFile(package / "jars/rocksdbjni-9.jar") as jar:
        assert set(jar.namelist()) == {f"librocksdbjni-{library}", "org/rocksdb/RocksDB.class"}


@pytest.mark.parametrize("name", SLOW)
def test_what_makes_each_start_slower_goes(package: Path, name: str) -> None:
    slim(package, "x86_64")
    with zipfile.ZipFile(package / "jars" / name) as jar:
        assert set(jar.namelist()) == {"META-INF/MANIFEST.MF", "a.class"}
