"""Spark's Java takes the class archive, and not in vain: what it maps into its memory is told by the kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest

from fraud_filter.java import class_archive
from lab.harness.supplies import ensure_class_archive


def test_a_session_uses_the_archive(spark: Any, java_home: Path) -> None:
    archive = class_archive.find()
    if archive is None:
        pytest.skip(f"the Java in {java_home} writes no archive")
    java = psutil.Process(spark.sparkContext._gateway.proc.pid)
    assert str(archive) in {region.path for region in java.memory_maps()}


def test_it_is_made_once(java_home: Path) -> None:
    said: list[str] = []
    ensure_class_archive(java_home, said.append)
    assert said == []
