"""A short experiment as a user runs it: real broker, real Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHANGE = "partitions=3;rule_count=20;blocked_ids=50"
SHORT = ("--rates", "100", "--rounds", "1", "--seconds", "3", "--warmup", "1", "--warmup-rate", "100")


@pytest.mark.timeout(480)  # three quarters of a minute where nothing else runs
def test_a_change_of_sizes_is_measured_beside_the_mode_as_it_is(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "fraud_filter", "experiment", "real-time", CHANGE, *SHORT]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=450)
    assert done.returncode == 0, done.stdout + done.stderr
    base, changed = json.loads((tmp_path / "experiment.json").read_text())["results"]
    assert [(one["change"], one["partitions"]) for one in (base, changed)] == [("as it is", 2), (CHANGE, 3)]
    for one in (base, changed):
        assert (one["lost"], one["unexpected"], one["errors"]) == (0, 0, [])
        assert one["p50_ms"] > 0
        assert one["cpu_s_per_1000"] > 0
        assert one["scrapes"] > 0
