"""Intruders in each network of a stack, and in none of them: what they reach, and what they get with which secret."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable
from pathlib import Path

import beside
import intruder
from deployed import Deployed
from fraud_filter import config
from fraud_filter.compose import env_file, secrets
from fraud_filter.compose.stack import ServiceState, Stack
from fraud_filter.kafka.access import load_users
from intruder import Attempt, Task
from listening import listening

NETWORKS = ("alerts", "kafka", "load", "monitoring", "receiver", "spark")
#: Docker's own network, in which nothing of a stack is.
OUTSIDE = "bridge"
#: The port at which Spark's master would take programs: tried, although nothing may listen there.
SUBMISSIONS = ("spark-master", 6066)
_CONNECT_S = 2.0

Listeners = dict[str, dict[int | str, bool]]


def running(stack: Stack) -> list[ServiceState]:
    """Containers that run."""
    return [state for state in stack.states() if state.state == "running"]


def find_listeners(stack: Stack) -> Listeners:
    """The ports of each service that runs."""
    return {state.service: listening(state.container) for state in running(stack)}


def places(stack: Stack, listeners: Listeners) -> list[tuple[str, int, str]]:
    """Every port that others may reach, at every address of its container."""
    ports = [(service, port) for service, found in listeners.items() for port, own in found.items() if not own]
    return [
        (state.service, int(port), network["IPAddress"])
        for state in running(stack)
        for network in state.container.attrs["NetworkSettings"]["Networks"].values()
        for service, port in (*ports, SUBMISSIONS)
        if service == state.service
    ]


def send(deployed: Deployed, networks: Iterable[str]) -> dict[str, list[Attempt]]:
    """One into each network, all at the same time; what each has tried."""
    stack = deployed.open()
    settings = config.load(env_file=deployed.env)
    directory = Path(env_file.read(deployed.env)["SECRETS_DIR"]) if stack.secure else None
    task: Task = {
        "ports": places(stack, find_listeners(stack)),
        "kafka_port": int(stack.value("KAFKA_PORT")),
        "topics": [settings.input_topic, settings.flagged_topic, settings.rejected_topic],
        "groups": ["fraud-filter-reader", "spark-kafka-source-intruder", "fraud-filter-lock-intruder", "intruder"],
        "users": [user.name for user in load_users(settings)] if directory else [],
        "tokens": ["spark-ui-token"] if directory else [],
        "passwords": _passwords() if directory else {},
    }
    files = {Path(__file__).with_name(f"{name}.py"): "/intruder" for name in ("intruder", "intruder_kafka")}
    files |= dict.fromkeys(directory.iterdir(), "/run/secrets") if directory else {}
    started = {
        network: beside.start(
            stack,
            network if network == OUTSIDE else f"{stack.name}_{network}",
            *("python", "/intruder/intruder.py", json.dumps(task)),
            files=files,
        )
        for network in networks
    }
    return {network: [Attempt(*each) for each in json.loads(said)] for network, said in beside.end_all(started).items()}


def _passwords() -> dict[str, str]:
    """Files that hold a password or something like it, and whom it is for; for who has none the name of the file."""
    own = {secrets.PROMETHEUS_PASSWORD: secrets.PROMETHEUS_USER, secrets.GRAFANA_PASSWORD: "admin"}
    others = ("kafka-filter", "kafka-generator", "kafka-probe", secrets.OPERATOR, "spark-secret")
    return {**own, **dict.fromkeys(others, secrets.PROMETHEUS_USER)}


def gets(attempts: Iterable[Attempt], held: str) -> dict[str, list[str]]:
    """What was had with a secret, by `service:port`."""
    found: dict[str, list[str]] = {}
    for attempt in attempts:
        if attempt.held == held and not attempt.refusal and attempt.what != intruder.CONNECT:
            found.setdefault(f"{attempt.service}:{attempt.port}", []).append(attempt.what)
    return {place: found[place] for place in sorted(found)}


def reached(attempts: Iterable[Attempt]) -> set[tuple[str, int]]:
    """Services and ports that took a connection."""
    return {(attempt.service, attempt.port) for attempt in attempts if attempt.what == intruder.CONNECT}


def refuses(address: str, port: int) -> bool:
    """Whether no connection is taken there, from this machine."""
    with socket.socket() as client:
        client.settimeout(_CONNECT_S)
        return client.connect_ex((address, port)) != 0
