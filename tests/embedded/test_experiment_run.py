"""A short experiment as a user runs it: real broker, real Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from running import until

SIZES = "partitions=3;rule_count=20;blocked_ids=50"
SHORT = ("--rates", "100", "--rounds", "1", "--seconds", "3", "--warmup", "1", "--warmup-rate", "100", "--repeats", "0")


@pytest.mark.timeout(480)  # three quarters of a minute where nothing else runs
def test_a_change_of_sizes_and_place_is_measured_beside_the_mode_as_it_is(tmp_path: Path) -> None:
    place, log = tmp_path / "checkpoints", tmp_path / "log"
    place.mkdir()
    change = f"{SIZES};checkpoint={place}"
    argv = [sys.executable, "-m", "fraud_filter", "experiment", "real-time", change, *SHORT]
    checkpoints: set[Path] = set()
    with log.open("w") as said, subprocess.Popen(argv, cwd=tmp_path, stdout=said, stderr=said) as experiment:

        def has_ended() -> bool:
            checkpoints.update(metadata.parent for metadata in place.glob("*/*/metadata"))
            return experiment.poll() is not None

        try:
            until(has_ended, "the experiment ends", timeout_s=450)
        finally:
            experiment.terminate()  # when it is too late; otherwise it has ended
    assert experiment.returncode == 0, log.read_text()
    assert len(checkpoints) == 1  # of the changed one alone, and gone with it
    assert list(place.iterdir()) == []
    base, changed = json.loads((tmp_path / "experiment.json").read_text())["results"]
    assert [(one["change"], one["partitions"]) for one in (base, changed)] == [("as it is", 2), (change, 3)]
    for one in (base, changed):
        assert (one["lost"], one["unexpected"], one["errors"], one["repeated"]) == (0, 0, [], 0)
        assert 0 <= one["stolen_share"] < 1
        assert one["p50_ms"] > 0
        assert one["cpu_s_per_1000"] > 0
        assert one["scrapes"] > 0
