"""The lock of a checkpoint: where its file lies, and what is told when it can't be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from fraud_filter.config import load
from fraud_filter.errors import UsageError
from fraud_filter.supervisor.lock import NAME, checkpoint_lock


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


def test_the_lock_lies_in_the_checkpoint_and_is_held_once(tmp_path: Path) -> None:
    folder = tmp_path / "run#1"
    folder.mkdir()
    settings = load({"checkpoint": str(folder)})
    with checkpoint_lock(settings):
        assert (folder / NAME).exists()
        with pytest.raises(UsageError, match=r"another filter .* works on"), checkpoint_lock(settings):
            pass


def test_a_lock_that_can_not_be_written_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    message = r"setting checkpoint .*can't be written: Is a directory; run the filter as"
    with pytest.raises(UsageError, match=message), checkpoint_lock(load({"checkpoint": str(tmp_path)})):
        pass
