"""Brings services up by `docker compose up --wait`; says of those that are not ready what they logged last."""

from __future__ import annotations

import math
import subprocess
import time
from collections.abc import Iterable

from fraud_filter.compose.stack import ServiceState, Stack
from fraud_filter.errors import FraudFilterError

_LOG_LINES = 15
#: Seconds that Compose gets to end by itself after its own time is over.
_END_S = 30.0


def start(stack: Stack, words: Iterable[str], services: list[str], timeout_s: float) -> float:
    """Runs `docker compose up --wait ...`, whose progress goes to stderr, until `services` are ready.

    Returns:
        The seconds that it took.

    Raises:
        FraudFilterError: a service was not ready within `timeout_s` seconds, or can't become ready.
    """
    began = time.monotonic()
    waiting = ("--wait", "--wait-timeout", str(math.ceil(timeout_s)))
    command = stack.command("up", "--detach", "--no-build", *waiting, *words)
    try:
        done = subprocess.run(command, env=stack.environment(), check=False, timeout=timeout_s + _END_S)
    except subprocess.TimeoutExpired:
        raise _failure(stack, services, f"not ready within {timeout_s:.0f} s") from None
    if done.returncode:
        is_over = time.monotonic() - began >= timeout_s
        raise _failure(stack, services, f"not ready within {timeout_s:.0f} s" if is_over else "it can't become ready")
    return time.monotonic() - began


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


def _failure(stack: Stack, services: list[str], reason: str) -> FraudFilterError:
    states = stack.states()
    lines = []
    for service in unready(states, services):
        mine = [state for state in states if state.service == service]
        lines.append(f"{service} is {', '.join(state.word for state in mine) or 'not there'}")
        for state in mine:
            if state.state != "created":
                log = state.container.logs(tail=_LOG_LINES).decode(errors="replace").rstrip()
                lines += [f"    {line}" for line in log.splitlines()]
    return FraudFilterError("\n".join([f"the stack did not come up: {reason}", *lines]))
