"""Checkpoints on a real S3 server: kills, changes of mode, a state, repairs, and a store that is far away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from fraud_filter.home import HOME
from running import Stage, call
from s3_server import S3

LOCK_S = 6
ROUND_TRIP = "continuous:real-time,real-time:micro-batch,micro-batch:async-progress,async-progress:continuous"
QUICK = (
    "--checkpoint-lock-timeout-s",
    LOCK_S,
    "--continuous-interval",
    "1 second",
    "--real-time-duration",
    "5 seconds",
)


def ask(s3: S3, *words: object) -> CompletedProcess[str]:
    """What `fraud-filter WORDS` says, with the store's file system."""
    return call(*words, "--spark-conf", s3.spark_conf, timeout_s=1700, **s3.environment)


def try_kills(s3: S3, directory: Path, *words: object) -> list[dict[str, object]]:
    """The results of `lab trial kill` with checkpoints in the bucket: nothing was lost, repeated or unexpected."""
    file = directory / "trials.json"
    load = (
        "--rate",
        100,
        "--seconds",
        2,
        "--output",
        file,
        "--below",
        f"{s3.uri}/trials",
        "--spark-conf",
        s3.spark_conf,
    )
    done = call("lab", "trial", "kill", *words, *load, *QUICK, timeout_s=1700, **s3.environment)
    assert done.returncode == 0, done.stdout + done.stderr
    found: list[dict[str, object]] = json.loads(file.read_text())
    assert {(one["lost"], one["duplicated"], one["unexpected"], one["error"]) for one in found} == {(0, 0, 0, "")}
    return found


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> Iterator[S3]:
    with S3(tmp_path_factory.mktemp("s3"), java_home) as server:
        yield server


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("changes", ["continuous:real-time", pytest.param(ROUND_TRIP, marks=pytest.mark.exhaustive)])
def test_each_mode_is_killed_and_followed_by_another(s3: S3, tmp_path: Path, changes: str) -> None:
    found = try_kills(s3, tmp_path, "--ways", changes)
    assert ",".join(f"{one['mode']}:{one['to']}" for one in found) == changes
    assert "lacks the metadata line" in str(found[0]["seen_as"])


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_a_standby_goes_on_with_the_state_of_a_filter_that_was_killed(s3: S3, tmp_path: Path) -> None:
    """The audit compares each feature."""
    rules = ("--rules", HOME / "app/rules-velocity.yml", "--emit", "all")
    found = try_kills(s3, tmp_path, *rules, "--modes", "real-time,micro-batch", "--standby", "with")
    assert [one["standby"] for one in found] == [True, True]


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_a_store_that_is_far_away_loses_and_repeats_nothing(tmp_path: Path, java_home: Path) -> None:
    """Each request takes 0.3 s longer."""
    with S3(tmp_path, java_home, latency_ms=300) as s3:
        try_kills(s3, tmp_path, "--modes", "micro-batch,async-progress,continuous,real-time", "--standby", "without")


def test_inspect_and_repair_on_the_command_line(s3: S3, stage: Stage) -> None:
    """What a killed query left, on a store where files are put and never renamed."""
    s3.put(HOME / "tests/data/checkpoints/micro-batch-killed", "recorded")
    location = f"{s3.uri}/recorded"
    nowhere = ask(s3, "checkpoint", "inspect", f"{s3.uri}/nothing")
    assert nowhere.returncode == 2
    assert "is no checkpoint" in nowhere.stderr
    before = json.loads(ask(s3, "checkpoint", "inspect", location).stdout)
    assert (before["pending"], before["modes"]["real-time"]["startable"]) == ([1], False)
    at = ("--kafka-bootstrap-servers", stage.address)
    done = ask(s3, "checkpoint", "repair", location, "--to", "real-time", *at)
    assert done.returncode == 0, done.stderr
    after = json.loads(ask(s3, "checkpoint", "inspect", location).stdout)
    assert after["modes"]["real-time"]["startable"]
