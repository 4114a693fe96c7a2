"""Three Kafka brokers with each record on all of them: one or two are killed, hang or are restarted under load.

Decisions come back, nothing is lost and nothing is decided twice, by the audit.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import broker_faults as faults
from fraud_filter.config import ModeName, load
from fraud_filter.kafka.admin import find_topics, open_admin
from fraud_filter.kafka.topics import create_topics
from fraud_filter.query.preflight import count_partitions
from hdfs_cluster import Hdfs
from lab.harness.embedded_stack import Scene
from lab.harness.processes import Child
from lab.harness.waiting import let_pass
from lab.trials.embedded import Relay, open_scene
from lab.trials.embedded_acts import Act
from lab.trials.plan import Trial
from lock_holder import holder, said
from running import until

pytestmark = [pytest.mark.timed, pytest.mark.timeout(900)]
MODES = get_args(ModeName)
QUICK = {"real_time_duration": "5 seconds", "continuous_interval": "1 second", "restart_backoff_s": 0.2}
FAULTS: dict[str, Act] = {
    "leader-killed": faults.kill(faults.leader_of_input),
    "leader-hangs": faults.hang(faults.leader_of_input),
    "controller-killed": faults.kill(faults.controller),
    "each-restarted": faults.restart_each,
    "two-killed": faults.kill_two,
}


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    """Three brokers and a generator for all tests of this file."""
    with open_scene(load(QUICK), rate=100, seconds=2, below="", say=print, brokers=3) as scene:
        yield scene


def require_nothing_lost(scene: Scene, mode: ModeName, *names: str, standby: bool = False, **more: Act) -> None:
    """Each fault comes to one filter, after the other."""
    relay: Relay | None = None
    try:
        for name in names:
            trial = Trial(name, mode, mode, standby=standby)
            relay = relay or Relay(scene, trial, len(list(scene.stack.workspace.path.iterdir())))
            outcome = relay.disturb(trial, (FAULTS | more)[name])
            print(f"measured {outcome}")  # noqa: T201 - shown by pytest -s
            assert (outcome.audit.lost, outcome.audit.unexpected, outcome.audit.duplicated) == (0, 0, 0)
    finally:
        if relay:
            relay.stop()


def test_the_filter_goes_on_when_the_broker_that_leads_its_input_is_killed(scene: Scene) -> None:
    settings = scene.stack.settings
    topics = find_topics(open_admin(settings), settings, [settings.input_topic, settings.flagged_topic])
    assert {topic.replicas for topic in topics.values()} == {3}, "as the brokers' default says"
    require_nothing_lost(scene, "real-time", "leader-killed")


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", MODES)
def test_each_mode_goes_on_after_each_fault(scene: Scene, mode: ModeName) -> None:
    require_nothing_lost(scene, mode, *FAULTS)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", MODES)
def test_the_lock_is_kept_when_its_coordinator_is_killed(
    scene: Scene, mode: ModeName, tmp_path: Path, java_home: Path
) -> None:
    """A checkpoint in HDFS, and a standby that waits for its lock. It is lost where two brokers are away for long."""
    with Hdfs(tmp_path, java_home) as hdfs:
        own = Scene(
            scene.stack.with_settings({"checkpoint": f"{hdfs.uri}/{mode}", "standby_warm_up_s": 3}),
            scene.probe, scene.topic, scene.generator, scene.seconds,
        )  # fmt: skip
        lock = faults.kill(faults.coordinator_of_lock)
        require_nothing_lost(own, mode, "lock", "two-killed", standby=True, lock=lock)


def lock_holder_of(scene: Scene, directory: Path, seconds: str) -> Child:
    env = {"KAFKA_BOOTSTRAP_SERVERS": scene.stack.settings.kafka_bootstrap_servers}
    return holder("first", "hdfs://names:8020/a", directory, {**env, "FRAUD_CHECKPOINT_LOCK_TIMEOUT_S": seconds})


def test_a_lock_that_no_dead_broker_leaves_in_place_is_refused(scene: Scene, tmp_path: Path) -> None:
    with lock_holder_of(scene, tmp_path, "29") as refused:
        assert refused.wait(60) == 2
        assert "give 30 or more" in said(refused)


def test_the_lock_outlives_its_coordinator_and_is_lost_where_only_that_is_left(scene: Scene, tmp_path: Path) -> None:
    """One that is alone takes heartbeats as before; were it cut off, the others would give the lock to another."""
    stack = scene.stack
    with lock_holder_of(scene, tmp_path, "30") as first:
        until(lambda: "held" in said(first), "held")
        with faults.all_back(stack):
            faults.kill_at_once([faults.found(stack, faults.coordinator_of_lock)])
            let_pass(30, [first])  # longer than it holds without a word of the brokers
        assert "lost: " not in said(first)
        alone = faults.found(stack, faults.coordinator_of_lock)
        with faults.stopped(stack, [broker for broker in stack.brokers if broker is not alone]):
            until(lambda: "lost: " in said(first), "the loss")
        assert "no Kafka broker has confirmed it for 20 s" in said(first)


def test_a_topic_that_one_of_three_brokers_has_is_warned_of(
    scene: Scene, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """By `topics`, which has made it, and by the filter's start; where each record is on all of them, by neither."""
    file = tmp_path / "topics.yml"
    file.write_text("topics: [{name: alone, partitions: 1, replication_factor: 1}, {name: everywhere, partitions: 1}]")
    own = {"topics_file": file, "input_topic": "alone", "flagged_topic": "everywhere", "rejected_topic": "everywhere"}
    settings = scene.stack.settings.model_copy(update=own)
    with caplog.at_level(logging.WARNING):
        create_topics(settings)
        count_partitions(settings, first=True)
        count_partitions(settings)
    warned = [record.msg for record in caplog.records if "topics_on_one_broker" in str(record.msg)]
    assert len(warned) == 2
    assert all("'topics': 'alone'" in str(message) for message in warned)
