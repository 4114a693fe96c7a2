"""Checkpoints on a real HDFS: changes of mode after a kill, and repairs. Its lock is that of `test_group_lock`.

All twelve changes are `fraud-filter lab trial kill --ways all --below hdfs://…`; here each mode is left once, and
entered once. On a local disk the modes follow each other in `tests/integration/test_switch.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from dying_repairs import is_startable, open_as
from fraud_filter.checkpoint.files import CheckpointFiles
from hdfs_cluster import Hdfs
from lab.harness.processes import free_ports
from models import read, train, with_model
from running import Stage, call

RECORDED = Path(__file__).parents[1] / "data" / "checkpoints"
LOCK_S = 6
ROUND_TRIP = "continuous:real-time,real-time:micro-batch,micro-batch:async-progress,async-progress:continuous"
STATELESS = "rules:\n  - {name: large, when: amount >= 5000}"


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> Iterator[Hdfs]:
    """A cluster for all tests of this file."""
    with Hdfs(tmp_path_factory.mktemp("hdfs"), java_home) as cluster:
        yield cluster


def record(spark: Any, name: str, location: str, without: Sequence[str] = ()) -> CheckpointFiles:
    """Puts there what a killed query once left, `without` entries of these numbers."""
    files: CheckpointFiles = open_as(CheckpointFiles, spark, location)
    for path in (RECORDED / name).rglob("*"):
        if path.is_file() and path.name not in without:
            files.write(str(path.relative_to(RECORDED / name)), path.read_bytes())
    return files


@pytest.mark.exhaustive  # a filter with its checkpoint in HDFS is in test_yarn, a repair there below
@pytest.mark.timeout(600)
def test_each_mode_is_killed_and_followed_by_another_and_no_decision_or_score_is_lost(
    hdfs: Hdfs, spark: Any, tmp_path: Path
) -> None:
    """All processes are killed at each change; the audit is the verb's."""
    rules = with_model(tmp_path, STATELESS, "{name: scored, when: score > 0.02}")
    train(spark, read(rules), tmp_path / "model")
    file = tmp_path / "reports" / "trials.json"
    file.parent.mkdir()
    words = ["kill", "--ways", ROUND_TRIP, "--seconds", "1", "--rate", "100", "--output", str(file)]
    words += ["--rules", str(rules), "--below", f"{hdfs.uri}/trials"]
    quick = ("--checkpoint-lock-timeout-s", LOCK_S, "--continuous-interval", "1 second")
    done = call("lab", "trial", *words, *quick, timeout_s=590)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(file.read_text())
    assert ",".join(f"{one['mode']}:{one['to']}" for one in found) == ROUND_TRIP
    assert {(one["disturbance"], one["lost"], one["unexpected"], one["error"]) for one in found} == {("kill", 0, 0, "")}
    assert "lacks the metadata line" in found[0]["seen_as"]
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.exhaustive  # that late writes are counted is in test_written
@pytest.mark.timeout(600)
def test_a_filter_that_goes_on_after_a_takeover_writes_nothing_that_is_not_counted(hdfs: Hdfs, tmp_path: Path) -> None:
    """All processes are stopped for longer than the lock's timeout, as on a machine that was cut off."""
    file = tmp_path / "trials.json"
    words = ["thaw", "--standby", "with", "--modes", "real-time,continuous", "--tries", "2", "--seconds", "2"]
    words += ["--rate", "200", "--output", str(file), "--below", f"{hdfs.uri}/thawed"]
    quick = ("--checkpoint-lock-timeout-s", LOCK_S, "--continuous-interval", "1 second", "--standby-warm-up-s", "3")
    done = call("lab", "trial", *words, *quick, "--real-time-duration", "5 seconds", timeout_s=590)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(file.read_text())
    print(*((one["mode"], one["duplicated"], one["late_writes"]) for one in found))  # noqa: T201 - shown by pytest -s
    assert {(one["lost"], one["unexpected"], one["error"]) for one in found} == {(0, 0, "")}
    assert all(one["duplicated"] <= one["late_writes"] for one in found)


def test_inspect_and_repair_on_the_command_line(hdfs: Hdfs, spark: Any, stage: Stage) -> None:
    location = f"{hdfs.uri}/recorded-too"
    files = record(spark, "micro-batch-killed", location)
    found = json.loads(call("checkpoint", "inspect", location).stdout)
    assert (found["pending"], found["modes"]["real-time"]["startable"]) == ([1], False)
    nobody = ("--kafka-bootstrap-servers", f"127.0.0.1:{free_ports(1)[0]}", "--kafka-timeout-s", "2")
    lockless = call("checkpoint", "repair", location, "--to", "real-time", *nobody)
    assert lockless.returncode == 1
    assert "do not give its lock" in lockless.stderr
    assert "--unlocked repairs without" in lockless.stderr
    assert not is_startable(files, "real-time")
    done = call("checkpoint", "repair", location, "--to", "real-time", "--kafka-bootstrap-servers", stage.address)
    assert done.returncode == 0, done.stderr
    assert is_startable(files, "real-time")
    assert call("checkpoint", "repair", location, "--to", "continuous", "--unlocked", *nobody).returncode == 0
