"""Checkpoints on a real HDFS: changes of mode after a kill, two filters on one, and repairs.

All twelve changes are `fraud-filter lab trial kill --ways all --below hdfs://…`; here each mode is left once, and
entered once. On a local disk the modes follow each other in `tests/integration/test_switch.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from dying_repairs import is_startable, open_as, require_completed_after_each_kill
from faults import Decisions, Feed, events, kill_all
from fraud_filter.audit.run import audit
from fraud_filter.checkpoint.files import CheckpointFiles
from hdfs_cluster import Hdfs
from lab.harness.processes import Child, free_ports
from models import read, train, with_model
from running import Stage, call, wait_until

RECORDED = Path(__file__).parents[1] / "data" / "checkpoints"
LOCK_S = 6
ROUND_TRIP = "continuous:real-time,real-time:micro-batch,micro-batch:async-progress,async-progress:continuous"
STATELESS = "rules:\n  - {name: large, when: amount >= 5000}"
QUICK = {"checkpoint_lock_timeout_s": str(LOCK_S), "continuous_interval": "1 second", "restart_backoff_s": "0.2"}


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


@pytest.mark.timeout(600)
@pytest.mark.parametrize("changes", ["continuous:real-time", pytest.param(ROUND_TRIP, marks=pytest.mark.exhaustive)])
def test_each_mode_is_killed_and_followed_by_another_and_no_decision_or_score_is_lost(
    hdfs: Hdfs, spark: Any, tmp_path: Path, changes: str
) -> None:
    """All processes are killed at each change; the audit is the verb's."""
    rules = with_model(tmp_path, STATELESS, "{name: scored, when: score > 0.02}")
    train(spark, read(rules), tmp_path / "model")
    file = tmp_path / "reports" / "trials.json"
    file.parent.mkdir()
    words = ["kill", "--ways", changes, "--seconds", "1", "--rate", "100", "--output", str(file)]
    words += ["--rules", str(rules), "--below", f"{hdfs.uri}/trials"]
    quick = ("--checkpoint-lock-timeout-s", LOCK_S, "--continuous-interval", "1 second")
    done = call("lab", "trial", *words, *quick, timeout_s=590)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(file.read_text())
    assert ",".join(f"{one['mode']}:{one['to']}" for one in found) == changes
    assert {(one["disturbance"], one["lost"], one["unexpected"], one["error"]) for one in found} == {("kill", 0, 0, "")}
    assert "lacks the metadata line" in found[0]["seen_as"]
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_two_filters_on_one_checkpoint_and_a_repair_beside_them(hdfs: Hdfs, stage: Stage) -> None:
    """Continuous mode ignores that an epoch is written already: only the lock keeps a second filter away.

    Then the first is killed, and a third follows it. That one is stopped, and ends when it goes on: a fourth has taken
    over.
    """
    location = f"{hdfs.uri}/two"
    first, second, third, fourth = (
        stage.run(mode="continuous", checkpoint=location, metrics_port=str(port), **QUICK) for port in free_ports(4)
    )
    with first, Feed(stage) as feed, closing(Decisions(stage)) as decisions:
        wait_until(lambda: decisions.fresh({0: 5, 1: 5}), "decisions", first)
        with second:
            assert second.wait(60) == 2
            (message,) = [line for line in second.tail() if line.startswith("fraud-filter:")]
        assert f"another filter (process {first.pid} on " in message
        assert f"works on {location!r}; stop it, or take another location" in message
        refused = call("checkpoint", "repair", location, "--kafka-bootstrap-servers", stage.address)
        assert refused.returncode == 2
        assert f"argument PATH: a filter (process {first.pid} on " in refused.stderr
        inspected = call("checkpoint", "inspect", location, "--json")
        assert json.loads(inspected.stdout)["written_by"] == "continuous"
        kill_all(first)
        with third, fourth_after_a_stop(third, fourth, decisions):
            feed.stop()
            ends = {number: end - 2 for number, end in decisions.ends().items()}
            wait_until(lambda: decisions.fresh(ends), "all decided", fourth)
            assert fourth.stop(30) == 0
    result = audit(stage.settings())
    assert result.expected > 0
    assert (result.lost, result.unexpected) == (0, 0), result


@contextmanager
def fourth_after_a_stop(third: Child, fourth: Child, decisions: Decisions) -> Iterator[None]:
    """Once the third decides, its Python stands still until the fourth holds the lock, by when its Java has ended."""
    ends = decisions.ends()
    wait_until(lambda: decisions.fresh(ends), "fresh decisions", third)
    assert events(third, "checkpoint_locked")
    python = psutil.Process(third.pid)
    (java,) = [child for child in python.children(recursive=True) if child.name() == "java"]
    python.suspend()
    with fourth:
        wait_until(lambda: bool(events(fourth, "checkpoint_locked")), "the lock", fourth)
        assert not java.is_running() or java.status() == psutil.STATUS_ZOMBIE
        python.resume()
        assert third.wait(90) == 2
        assert "reason=lock-lost" in events(third, "restarting")[0]
        assert f"another filter (process {fourth.pid} on " in "\n".join(third.tail(3))
        ends = decisions.ends()
        wait_until(lambda: decisions.fresh(ends), "fresh decisions", fourth)
        yield


@pytest.mark.exhaustive
def test_a_repair_that_dies_at_any_change_is_completed_by_the_next(hdfs: Hdfs, spark: Any) -> None:
    location = f"{hdfs.uri}/recorded"
    record(spark, "continuous-killed", location, without=("0", "1", "2"))
    require_completed_after_each_kill(spark, location, "real-time", step=3)


def test_inspect_and_repair_on_the_command_line(hdfs: Hdfs, spark: Any, stage: Stage) -> None:
    location = f"{hdfs.uri}/recorded-too"
    files = record(spark, "micro-batch-killed", location)
    found = json.loads(call("checkpoint", "inspect", location, "--json").stdout)
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
