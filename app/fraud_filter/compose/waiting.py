"""Waits, for a bounded time, until every service is ready; says which one is not, and what it logged last."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterable

import click

from fraud_filter.compose.stack import ServiceState, Stack
from fraud_filter.errors import FraudFilterError

_LOOK_S = 1.0
_LOG_LINES = 15


def start(stack: Stack, words: Iterable[str], services: list[str], timeout_s: float) -> float:
    """Runs `docker compose up -d ...` and waits until `services` are ready.

    Returns:
        The seconds that it took.

    Raises:
        FraudFilterError: a service was not ready within `timeout_s` seconds, or can't become ready.
    """
    began = time.monotonic()
    # Until Compose has ended, these may be about to be replaced: their health says nothing.
    old = {state.container.id for state in stack.states()}
    with tempfile.TemporaryFile("w+") as said:
        command = stack.command("up", "--detach", "--no-build", *words)
        starting = subprocess.Popen(command, env=stack.environment(), stdout=said, stderr=subprocess.STDOUT)
        try:
            _watch(stack, services, old, began, timeout_s, starting)
        finally:
            if starting.poll() is None:
                starting.terminate()
            starting.wait()
        if starting.returncode > 0:
            said.seek(0)
            _fail(stack, services, (said.read().strip().splitlines() or ["docker compose failed"])[-1])
    return time.monotonic() - began


def _watch(
    stack: Stack,
    services: list[str],
    old: set[str],
    began: float,
    timeout_s: float,
    starting: subprocess.Popen[bytes],
) -> None:
    told: set[str] = set()
    while True:
        ended = starting.poll()
        states = stack.states()
        sure = states if ended == 0 else [state for state in states if state.container.id not in old]
        for service in sorted(_ready(sure, services) - told):
            told.add(service)
            click.echo(f"  {time.monotonic() - began:4.0f} s  {service}")
        if ended or (ended == 0 and len(told) == len(services) and not unready(states, services)):
            return
        if any(state.broken for state in sure if state.service in services):
            _fail(stack, services, "it can't become ready")
        if time.monotonic() - began > timeout_s:
            _fail(stack, services, f"not ready within {timeout_s:.0f} s")
        time.sleep(_LOOK_S)


def unready(states: list[ServiceState], services: list[str]) -> list[str]:
    """The services that are not ready, those that can't become so first."""
    waiting = [service for service in services if service not in _ready(states, services)]
    broken = {state.service for state in states if state.broken}
    return sorted(waiting, key=lambda service: service not in broken)


def _ready(states: list[ServiceState], services: list[str]) -> set[str]:
    by_service: dict[str, list[ServiceState]] = {}
    for state in states:
        by_service.setdefault(state.service, []).append(state)
    return {name for name in services if by_service.get(name) and all(state.ready for state in by_service[name])}


def _fail(stack: Stack, services: list[str], reason: str) -> None:
    states = stack.states()
    lines = []
    for service in unready(states, services):
        mine = [state for state in states if state.service == service]
        lines.append(f"{service} is {', '.join(state.word for state in mine) or 'not there'}")
        for state in mine:
            if state.state != "created":
                log = state.container.logs(tail=_LOG_LINES).decode(errors="replace").rstrip()
                lines += [f"    {line}" for line in log.splitlines()]
    raise FraudFilterError("\n".join([f"the stack did not come up: {reason}", *lines]))
