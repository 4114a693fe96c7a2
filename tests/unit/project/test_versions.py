"""Versions that must go together, held together."""

from __future__ import annotations

import re
import zipfile
from importlib.metadata import version
from pathlib import Path

import pyspark
import pytest
from jgo.env import LockFile
from packaging.version import Version

import fraud_filter
from fraud_filter.home import HOME

STREAMS = HOME / "app/lab/bench/streams"
FLINK = HOME / "app/lab/bench/flink"
JAR_LOCKS = sorted((*((HOME / path) for path in ("kafka", "monitoring/jmx", "spark", "spark/s3")), FLINK, STREAMS))
SPARK_JARS = Path(pyspark.__file__).parent / "jars"

#: Versions with known holes: from the first, below the second.
HOLES = {
    # CVE-2026-35554
    "org.apache.kafka:kafka-clients": [("2.8.0", "3.9.2"), ("4.0.0", "4.0.2"), ("4.1.0", "4.1.2")],
    # CVE-2025-12183 and CVE-2025-66566; what follows is at.yawk.lz4.
    "org.lz4:lz4-java": [("0", "999")],
    "at.yawk.lz4:lz4-java": [("0", "1.10.1")],
    # CVE-2025-68161
    "org.apache.logging.log4j:log4j-core": [("2.0", "2.25.3")],
    # GHSA-72hv-8253-57qq
    "com.fasterxml.jackson.core:jackson-core": [("2.0", "2.18.6"), ("2.19.0", "2.21.1")],
    # CVE-2025-48734
    "commons-beanutils:commons-beanutils": [("0", "1.11.0")],
}


@pytest.mark.parametrize("folder", JAR_LOCKS, ids=lambda path: path.name)
def test_no_jar_has_a_known_hole(folder: Path) -> None:
    for jar in LockFile.load(folder / "jgo.lock.toml").dependencies:
        for first, fixed in HOLES.get(f"{jar.groupId}:{jar.artifactId}", []):
            assert not Version(first) <= Version(jar.version) < Version(fixed), f"{jar.artifactId} {jar.version}"


def test_spark_s_own_lz4_has_no_known_hole() -> None:
    """It comes with the pyspark package, so that no lock of ours names it."""
    [jar] = SPARK_JARS.glob("lz4-java-*.jar")
    with zipfile.ZipFile(jar) as opened:
        properties = opened.read("META-INF/maven/at.yawk.lz4/lz4-java/pom.properties").decode()
    found = re.search(r"^version=(.+)$", properties, re.MULTILINE)
    assert found
    assert Version(found[1].strip()) >= Version("1.10.1")


def test_the_s3_client_is_of_spark_s_own_hadoop() -> None:
    [jar] = SPARK_JARS.glob("hadoop-client-api-*.jar")
    assert jar.stem == f"hadoop-client-api-{_pinned(HOME / 'spark/s3/jgo.toml', 'hadoop-aws')}"


def _pinned(file: Path, artifact: str) -> str:
    match = re.search(rf'"[\w.-]+:{re.escape(artifact)}:([\w.-]+)"', file.read_text())
    assert match, f"{artifact} is not in {file}"
    return match[1]


#: Version of Spark: that of the Kafka connector that goes with it, where it is not the same (spark/jgo.toml tells why).
CONNECTORS = {"4.3.0": "4.2.0"}


@pytest.mark.parametrize("artifact", ["spark-sql-kafka-0-10_2.13", "spark-token-provider-kafka-0-10_2.13"])
def test_the_kafka_connector_is_the_one_that_goes_with_spark(artifact: str) -> None:
    spark = version("pyspark")
    assert _pinned(HOME / "spark/jgo.toml", artifact) == CONNECTORS.get(spark, spark)


def test_kafka_streams_is_of_the_broker_s_version() -> None:
    """It runs with the broker's jars."""
    assert _pinned(STREAMS / "jgo.toml", "kafka-streams") == _pinned(HOME / "kafka/jgo.toml", "kafka-tools")


def test_the_lock_pins_the_versions_that_the_project_asks_for() -> None:
    lock = (HOME / "requirements.lock").read_text()
    assert f"pyspark=={version('pyspark')} " in lock
    for folder in ("kafka", "spark", "spark/s3", STREAMS):
        locked = (HOME / folder / "jgo.lock.toml").read_text()
        for asked in re.findall(r'"([\w.-]+):([\w.-]+):([\w.-]+)"', (HOME / folder / "jgo.toml").read_text()):
            group, artifact, wanted = asked
            entry = rf'groupId = "{group}"\nartifactId = "{artifact}"\nversion = "{wanted}"'
            assert re.search(entry, locked), asked


def test_the_version_is_the_package_s_and_the_changelog_s() -> None:
    named = re.search(r'^version = "(.+)"$', (HOME / "pyproject.toml").read_text(), re.MULTILINE)
    newest = re.search(r"^## (\S+)$", (HOME / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert named
    assert newest
    assert named[1] == newest[1] == fraud_filter.__version__
