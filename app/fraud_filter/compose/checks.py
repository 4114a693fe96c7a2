"""What must hold before anything is built or started: the payments' schema, the rules, cores, limits, ports."""

from __future__ import annotations

import errno
import socket

from fraud_filter.compose.stack import GRAFANA, Stack
from fraud_filter.config import Settings, load
from fraud_filter.errors import UsageError
from fraud_filter.home import HOME
from fraud_filter.modes import MODES
from fraud_filter.rules.ruleset import load_rules
from fraud_filter.schema import load_schema

_LOCAL = "127.0.0.1"
_SUFFIX = "_PORT"


def check_all(stack: Stack) -> Settings:
    """Every check of this module, and the program's own settings in the stack's `.env`.

    Raises:
        UsageError: names the setting or the file, its value, and what to do.
    """
    settings = load(env_file=stack.env)
    load_rules(HOME / "app/rules.yml", load_schema(HOME / "app/payment.ddl"))
    check_cores(stack.values, settings.mode)
    check_limits(stack.values, cores=stack.client.info()["NCPU"])
    check_ports(stack.values, grafana=GRAFANA in stack.profiles, ours=stack.published())
    return settings


def check_cores(values: dict[str, str], mode: str) -> None:
    """Checks that each partition gets a core where the mode holds a task for each partition permanently.

    Raises:
        UsageError: there are too few; names both numbers.
    """
    partitions, cores = _number(values, "KAFKA_PARTITIONS"), _number(values, "SPARK_WORKER_CORES")
    workers = _number(values, "SPARK_WORKERS")
    if MODES[mode].holds_tasks and partitions > cores * workers:  # type: ignore[index]
        raise UsageError(
            f"KAFKA_PARTITIONS={partitions} needs {partitions} cores in {mode} mode, and SPARK_WORKER_CORES={cores} "
            f"with SPARK_WORKERS={workers} gives {cores * workers}: raise one of these two"
        )


def check_limits(values: dict[str, str], *, cores: int) -> None:
    """Checks that no container may use more cores than the Docker Engine has: it would refuse to make it.

    Raises:
        UsageError: one may; names setting and cores.
    """
    for name, value in values.items():
        if not name.endswith("_CPUS"):
            continue
        try:
            allowed = float(value)
        except ValueError:
            allowed = 0
        if not 0 < allowed <= cores:
            raise UsageError(f"{name}={value} is not accepted: the Docker Engine has {cores} cores, give at most these")


def check_ports(values: dict[str, str], *, grafana: bool, ours: set[int]) -> None:
    """Checks that the ports are free; `ours` are those that the stack itself holds already.

    Raises:
        UsageError: one is taken, or named twice; names setting and port.
    """
    seen: dict[int, str] = {}
    for name in values:
        if not name.endswith(_SUFFIX) or (name == "GRAFANA_PORT" and not grafana):
            continue
        port = _number(values, name)
        if port in seen:
            raise UsageError(f"{name}={port} is the port of {seen[port]} too: give each one of its own")
        seen[port] = name
        if port > 65535:
            raise UsageError(f"{name}={port} is no port: give one from 1 to 65535")
        if port not in ours and _taken(port):
            raise UsageError(f"{name}={port}: another program holds this port: stop it, or give another one")


def _number(values: dict[str, str], name: str) -> int:
    text = values.get(name, "")
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"{name}={text} is not accepted: give a whole number from 1")
    return int(text)


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that were closed don't count
        try:
            probe.bind((_LOCAL, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False
