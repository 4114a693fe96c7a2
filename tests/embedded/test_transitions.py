"""Changes of mode on one checkpoint, as `make transitions` runs them: killed, under load, audited."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from models import read, train, with_model

STATELESS = "rules:\n  - {name: large, when: amount >= 5000}"
#: Through all modes; the other changes are those of `test_hdfs`, and all twelve `make transitions`.
ROUTE = "continuous:real-time,real-time:micro-batch,micro-batch:async-progress"


@pytest.mark.timeout(600)
def test_a_killed_mode_is_followed_by_another_and_no_decision_or_score_is_lost(spark: Any, tmp_path: Path) -> None:
    rules = with_model(tmp_path, STATELESS, "{name: scored, when: score > 0.02}")
    train(spark, read(rules), tmp_path / "model")
    file = tmp_path / "reports" / "transitions.json"
    file.parent.mkdir()
    arguments = ["--only", ROUTE, "--stop", "kill", "--seconds", "3", "--rules", str(rules), "--output", str(file)]
    argv = [sys.executable, "-m", "fraud_filter", "transitions", *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=560, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(file.read_text())
    assert ",".join(f"{one['from']}:{one['to']}" for one in found) == ROUTE
    assert {(one["stop"], one["lost"], one["unexpected"], one["error"]) for one in found} == {("kill", 0, 0, "")}
    assert "lacks the metadata line" in found[0]["how"]
    assert list(file.parent.iterdir()) == [file]
