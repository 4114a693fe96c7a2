"""The stack without a broker of its own, on a Kafka that is there already, with rules and a schema of one's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployed import Deployed, make_env, run
from fraud_filter.compose import env_file
from fraud_filter.compose.stack import connect
from fraud_filter.home import HOME
from fraud_filter.java.jars import resolve_jars
from lab.harness.broker import Broker
from lab.harness.java import require_java
from lab.harness.workspace import Workspace
from waiting import wait_until

PROJECT = "fraud-filter-test-existing"
FILES = "docker-compose.yml:docker-compose.existing-kafka.yml"
RULES = "rules:\n  - name: {name}\n    when: amount >= 0\n"
FLAGGED = "fraud_filter_flagged_records_total"


class _ReachableBroker(Broker):
    """A broker at the address that containers know this machine by, and not at 127.0.0.1."""

    @property
    def address(self) -> str:
        (bridge,) = connect().networks.list(names=["bridge"])
        return f"{bridge.attrs['IPAM']['Config'][0]['Gateway']}:{self._port}"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Workspace("existing-kafka-") as workspace:
        jars = resolve_jars(HOME / "kafka/jgo.lock.toml")
        with _ReachableBroker(workspace, java_home=require_java(), jars=jars) as broker:
            yield broker


@pytest.fixture(scope="module")
def beside(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    env = make_env(
        tmp_path_factory.mktemp("existing") / ".env",
        COMPOSE_PROJECT_NAME=PROJECT, COMPOSE_FILE=FILES, KAFKA_BOOTSTRAP_SERVERS=broker.address,
        FRAUD_MODE="real-time", FRAUD_RULES="conf/mine.yml", FRAUD_INPUT_TOPIC="orders",
    )  # fmt: skip
    (env.parent / "conf/mine.yml").write_text(RULES.format(name="first-of-mine"))
    deployed = Deployed(env)
    try:
        up = deployed.call("up", "--timeout", "500")
        assert up.returncode == 0, up.stdout
        assert f"Kafka              {broker.address}" in up.stdout
        yield deployed
    finally:
        deployed.call("down", "--volumes")


def _newest_rules(stack: Deployed) -> list[str]:
    """Names of the rules in the newest decision, read from this machine."""
    tail = run("tail", "--topic", "flagged", "--limit", "1", "--json", FRAUD_ENV_FILE=str(stack.env))
    assert tail.returncode == 0, tail.stdout
    names: list[str] = json.loads(tail.stdout)["value"]["rules"]
    return names


def test_it_runs_without_a_broker_of_its_own(beside: Deployed) -> None:
    assert "kafka" not in {state.service for state in beside.open().states()}
    assert wait_until("flagged payments", lambda: sum(beside.metric(FLAGGED, "FRAUD_PROBE_PORT").values()))


def test_prometheus_misses_no_broker(beside: Deployed) -> None:
    def targets() -> dict[str, str]:
        found = beside.json("PROMETHEUS_PORT", "/api/v1/targets")["data"]["activeTargets"]
        return {target["labels"]["job"]: target["health"] for target in found}

    assert wait_until("all targets are up", lambda: set(targets().values()) == {"up"})
    assert "kafka" not in targets()


def test_rules_of_one_s_own_decide_and_a_change_of_them_does_too(beside: Deployed) -> None:
    assert _newest_rules(beside) == ["first-of-mine"]
    (beside.env.parent / "conf/mine.yml").write_text(RULES.format(name="second-of-mine"))
    up = beside.call("up")
    assert up.returncode == 0, up.stdout
    wait_until("decisions by the new rule", lambda: _newest_rules(beside) == ["second-of-mine"])


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("FRAUD_RULES", "mine.yml", "put the file there, and give conf/mine.yml"),
        ("FRAUD_RULES", "conf/nothing.yml", "there is no file"),
        ("FRAUD_CHECKPOINT", "checkpoint", "give such a path"),
        ("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9092", "is the container itself"),
        ("COMPOSE_FILE", FILES + ":docker-compose.secure.yml", "take one of the two away"),
    ],
)
def test_what_containers_can_t_find_is_refused(tmp_path: Path, name: str, value: str, words: str) -> None:
    env = make_env(tmp_path / ".env", COMPOSE_PROJECT_NAME="fraud-filter-refused", COMPOSE_FILE=FILES)
    env_file.change(env, "KAFKA_BOOTSTRAP_SERVERS", "kafka.example.org:9092")
    env_file.change(env, name, value)
    refused = Deployed(env).call("up")
    assert (refused.returncode, len(refused.stdout.splitlines())) == (2, 1), refused.stdout
    assert words in refused.stdout


def test_no_docker_engine_is_told(tmp_path: Path) -> None:
    env = make_env(tmp_path / ".env", COMPOSE_PROJECT_NAME="fraud-filter-refused")
    refused = Deployed(env).call("up", DOCKER_HOST="unix:///nowhere/docker.sock")
    assert (refused.returncode, len(refused.stdout.splitlines())) == (2, 1)
    assert "Docker Engine" in refused.stdout
