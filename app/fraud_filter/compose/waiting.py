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


def unready(stack: Stack, services: list[str]) -> dict[str, list[ServiceState]]:
    """The containers of each service that is not ready; a service may have none."""
    states = stack.states()
    found = {service: [state for state in states if state.service == service] for service in services}
    return {service: mine for service, mine in found.items() if not mine or not all(state.ready for state in mine)}


def _failure(stack: Stack, services: list[str], reason: str) -> FraudFilterError:
    """What is not ready; first what can't become so."""
    lines = []
    for name, mine in sorted(unready(stack, services).items(), key=lambda one: not any(each.broken for each in one[1])):
        lines.append(f"{name} is {', '.join(state.word for state in mine) or 'not there'}")
        for state in mine:
            if state.state != "created":
                log = state.container.logs(tail=_LOG_LINES).decode(errors="replace").rstrip()
                lines += [f"    {line}" for line in log.splitlines()]
    return FraudFilterError("\n".join([f"the stack did not come up: {reason}", *lines]))
