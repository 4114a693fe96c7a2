"""The stack with three brokers: any one may die, and what one broker wrote is not taken for a part of three."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from audits import nothing_is_lost
from deployed import Deployed, make_env
from fraud_filter.compose import env_file
from fraud_filter.config import load
from fraud_filter.kafka.admin import open_admin
from fraud_filter.probe.probe import Probe
from lab.harness.compose_stack import ComposeStack
from waiting import wait_until

BROKERS = ("kafka", "kafka-2", "kafka-3")
_PORTS = ("KAFKA_PORT", "SECOND_KAFKA_PORT", "THIRD_KAFKA_PORT")
#: Seconds until decisions go on: a leader is missed after 9 s.
_GO_ON_S = 120

# One broker of three is killed in tests/embedded/test_three_brokers.py, by each run.
pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "secured"])
def three(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    env = make_env(
        tmp_path_factory.mktemp("three") / ".env",
        COMPOSE_PROJECT_NAME="fraud-filter-test-brokers", COMPOSE_PROFILES="", BROKERS="3", FRAUD_MODE="real-time",
        FRAUD_REAL_TIME_DURATION="10 seconds", FRAUD_RULES="app/rules.yml", FRAUD_EMIT="all", GENERATOR_RATE="50",
    )  # fmt: skip
    ports = env_file.read(env)
    env_file.change(env, "KAFKA_BOOTSTRAP_SERVERS", ",".join(f"127.0.0.1:{ports[name]}" for name in _PORTS))
    deployed = Deployed(env)
    try:
        up = deployed.call("up", *(["--secure"] if request.param else []), "--timeout", "500")
        assert up.returncode == 0, up.stdout
        yield deployed
    finally:
        deployed.call("down", "--volumes")


def _partitions(three: Deployed) -> list[Any]:
    """Of the topics of payments and of decisions, as a broker describes them."""
    settings = load(env_file=three.env)
    known = open_admin(settings).list_topics(timeout=20).topics
    names = (settings.input_topic, settings.flagged_topic, settings.approved_topic)
    return [partition for name in names for partition in known[name].partitions.values()]


def _all_in_sync(three: Deployed) -> bool:
    return all(len(partition.isrs) == 3 for partition in _partitions(three))


def test_each_record_is_on_three(three: Deployed) -> None:
    assert all(sorted(partition.replicas) == [1, 2, 3] for partition in _partitions(three))


def test_any_broker_may_die(three: Deployed) -> None:
    stack, settings = three.open(), load(env_file=three.env)
    with Probe(settings) as probe:
        stage = ComposeStack(stack, settings, probe, print)
        for name in BROKERS:
            broker = stage.container(name)
            broker.kill()
            stage.await_decisions(stage.ends(), _GO_ON_S)
            broker.start()
            stage.await_ready(_GO_ON_S)
            wait_until("all copies are up to date", lambda: _all_in_sync(three), _GO_ON_S)
    found = nothing_is_lost(three)
    assert found["duplicated"] == 0, found


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("iptables"), reason="only root can cut a connection")
def test_a_leader_that_the_others_do_not_reach_is_replaced(three: Deployed) -> None:
    """Clients reach it as before; what it alone has is acknowledged to nobody."""
    stack, settings = three.open(), load(env_file=three.env)
    with Probe(settings) as probe:
        stage = ComposeStack(stack, settings, probe, print)
        former = _partitions(three)[0].leader
        with _cut_off(stage, BROKERS[former - 1]):
            wait_until("another leads", lambda: _partitions(three)[0].leader not in (-1, former), _GO_ON_S)
            stage.await_decisions(stage.ends(), _GO_ON_S)
        wait_until("all copies are up to date", lambda: _all_in_sync(three), _GO_ON_S)
        stage.await_decisions(stage.ends(), _GO_ON_S)
    found = nothing_is_lost(three)
    assert found["duplicated"] == 0, found


@contextmanager
def _cut_off(stage: ComposeStack, name: str) -> Iterator[None]:
    """Within it the broker and the two others get nothing of each other."""
    addresses = [
        network["IPAddress"]
        for other in BROKERS
        if other != name
        for network in stage.container(other).attrs["NetworkSettings"]["Networks"].values()
    ]
    inside = ("nsenter", "--net", "--target", str(stage.container(name).attrs["State"]["Pid"]), "iptables")
    ways = (("INPUT", "--source"), ("OUTPUT", "--destination"))
    rules = [(chain, end, address, "--jump", "DROP") for chain, end in ways for address in addresses]
    for rule in rules:
        subprocess.run([*inside, "--insert", *rule], check=True)
    try:
        yield
    finally:
        for rule in rules:
            subprocess.run([*inside, "--delete", *rule], check=True)


def test_another_number_is_refused_and_nothing_is_lost(three: Deployed) -> None:
    env_file.change(three.env, "BROKERS", "1")
    fewer = three.call("up", "--timeout", "120")
    assert fewer.returncode == 1
    assert "BROKERS=1: the data of this broker are those of BROKERS=3" in fewer.stdout
    env_file.change(three.env, "BROKERS", "3")
    again = three.call("up", "--timeout", "500")
    assert again.returncode == 0, again.stdout
    nothing_is_lost(three)
