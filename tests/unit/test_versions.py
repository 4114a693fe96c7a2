"""Versions that must go together, held together."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

from fraud_filter.config import HOME


def _pinned(file: Path, artifact: str) -> str:
    match = re.search(rf'"[\w.-]+:{re.escape(artifact)}:([\w.-]+)"', file.read_text())
    assert match, f"{artifact} is not in {file}"
    return match[1]


def test_the_kafka_connector_is_of_the_same_version_as_spark() -> None:
    assert _pinned(HOME / "spark/jgo.toml", "spark-sql-kafka-0-10_2.13") == version("pyspark")


def test_the_lock_pins_the_versions_that_the_project_asks_for() -> None:
    lock = (HOME / "requirements.lock").read_text()
    assert f"pyspark=={version('pyspark')} " in lock
    for folder in ("kafka", "spark"):
        locked = (HOME / folder / "jgo.lock.toml").read_text()
        for asked in re.findall(r'"([\w.-]+):([\w.-]+):([\w.-]+)"', (HOME / folder / "jgo.toml").read_text()):
            group, artifact, wanted = asked
            entry = rf'groupId = "{group}"\nartifactId = "{artifact}"\nversion = "{wanted}"'
            assert re.search(entry, locked), asked
