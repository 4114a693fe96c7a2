"""Changes of mode on one checkpoint, as `make transitions` runs them: killed, under load, audited."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.timeout(390)
def test_a_killed_mode_is_followed_by_another_and_nothing_is_lost(tmp_path: Path) -> None:
    changes = "continuous:micro-batch,micro-batch:continuous,continuous:real-time"
    file = tmp_path / "transitions.json"
    arguments = ["--only", changes, "--stop", "kill", "--seconds", "3", "--output", str(file)]
    argv = [sys.executable, "-m", "fraud_filter", "transitions", *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=380, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {(one["from"], one["to"]): one for one in json.loads(file.read_text())}
    assert len(found) == 3
    for (old, _), one in found.items():
        assert (one["lost"], one["unexpected"], one["stop"], one["error"]) == (0, 0, "kill", "")
        if old == "continuous":
            assert "lacks the metadata line" in one["how"]
    assert list(tmp_path.iterdir()) == [file]
