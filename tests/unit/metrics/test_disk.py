"""The room on the checkpoint's disk."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fraud_filter.metrics.filter_metrics import DiskMetrics
from fraud_filter.metrics.server import Registry


def free(checkpoint: Path | None) -> tuple[float | None, float | None]:
    registry = Registry()
    DiskMetrics(registry, checkpoint)
    name = "fraud_filter_checkpoint_disk_"
    return registry.get_sample_value(f"{name}size_bytes"), registry.get_sample_value(f"{name}free_bytes")


def test_size_and_room_are_those_of_the_disk_below_the_checkpoint(tmp_path: Path) -> None:
    size, room = free(tmp_path)
    assert size == shutil.disk_usage(tmp_path).total
    assert room is not None
    assert 0 < room <= shutil.disk_usage(tmp_path).total


@pytest.mark.parametrize("checkpoint", [None, Path("/nowhere/checkpoint")])
def test_what_is_not_known_has_no_sample(checkpoint: Path | None) -> None:
    assert free(checkpoint) == (None, None)
