"""The two replicas of the filter in the stack, of which one is active, and the change from one to the other."""

from __future__ import annotations

import time
from typing import Literal

from docker.errors import APIError
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from fraud_filter.compose.stack import FILTER, STANDBY, ServiceState, Stack
from fraud_filter.compose.waiting import start
from fraud_filter.errors import FraudFilterError

PROBE = "probe"
_WORKER = "standby-worker"
#: Of their metrics, in their containers: docker-compose.yml fixes them.
_PORTS = {FILTER: "9400", STANDBY: "9400", PROBE: "9401"}
#: Docker's client reads past what comes in one piece with the answer's head: then a page lacks its beginning.
_TRIES, _BEGINNING = 3, b"# HELP "
_UP, _STATE = "fraud_filter_up", "fraud_filter_state"
#: Told to a standby (`supervisor.handover`).
_SIGNALS = {"commit": "SIGUSR1", "now": "SIGUSR2"}
_LOOK_S = 0.5
#: The end of a filter, as docker-compose.yml has it, in seconds.
_END_S = 70


def samples(stack: Stack, service: str) -> list[Sample]:
    """What the page of a service tells; it is asked in its container, as the port may not be published."""
    for state in _running(stack, service):
        for _ in range(_TRIES):
            try:
                code, page = state.container.exec_run(["healthcheck", "get", _PORTS[service], "/metrics"])
            except APIError:  # it has ended since it was listed
                break
            if code == 0 and page.startswith(_BEGINNING):
                families = text_string_to_metric_families(page.decode())
                return [sample for family in families for sample in family.samples]
    return []


def total(stack: Stack, service: str, names: tuple[str, ...]) -> float:
    """Sum of the samples of these names on the page of a service."""
    return sum(sample.value for sample in samples(stack, service) if sample.name in names)


def active(stack: Stack) -> str | None:
    """The service of which the filter works on the checkpoint now; None where none does."""
    return next((replica for replica in (FILTER, STANDBY) if total(stack, replica, (_UP,))), None)


def one_waits(stack: Stack) -> bool:
    """Whether a filter waits, warm, beside the active one."""
    return any(
        sample.value
        for replica in (FILTER, STANDBY)
        for sample in samples(stack, replica)
        if sample.name == _STATE and sample.labels["state"] == "standby"
    )


def are_two(stack: Stack) -> bool:
    """Whether the stack has a standby, and it was started."""
    return stack.has_standby and any(state.service == STANDBY for state in stack.states())


def warm_beside(stack: Stack, former: str, timeout_s: float) -> str:
    """Makes the filter beside the active one as `.env`, the rules and the images are now; returns its service.

    Args:
        former: the service of the active filter.
        timeout_s: seconds until the other one must be warm.

    Raises:
        FraudFilterError: it does not become so; the active one runs on.
    """
    following = STANDBY if former == FILTER else FILTER
    try:
        start(stack, ("--no-deps", following), [following], timeout_s)
    except FraudFilterError as error:
        raise FraudFilterError(f"{error}\nthe filter in {former} runs on as it was") from None
    return following


def hand_over(stack: Stack, following: str, at: Literal["commit", "now"], timeout_s: float) -> None:
    """Has the warm filter of a service ask the active one to end in its favour, and waits until it works.

    Raises:
        FraudFilterError: it does not work within `timeout_s` seconds.
    """
    deadline = time.monotonic() + timeout_s
    for state in _running(stack, following):
        state.container.kill(signal=_SIGNALS[at])
    while not total(stack, following, (_UP,)):
        if time.monotonic() > deadline:
            raise FraudFilterError(
                f"the filter in {following} is warm and has asked for the handover, and did not get it within "
                f"{timeout_s:.0f} s: see docker compose logs"
            )
        time.sleep(_LOOK_S)


def leave_one(stack: Stack) -> None:
    """Ends the standby and its workers where none is wanted any more; was it the active one, the other takes over."""
    if stack.has_standby:
        return
    for service in (STANDBY, _WORKER):
        for state in stack.states():
            if state.service == service:
                state.container.stop(timeout=_END_S)
                state.container.remove()


def alike(stack: Stack) -> bool:
    """Whether both filters were made from the same settings, files and image."""
    made = [_made_of(state) for state in stack.states() if state.service in (FILTER, STANDBY)]
    return len(made) > 1 and all(each == made[0] for each in made)


def _made_of(state: ServiceState) -> tuple[object, ...]:
    attributes = state.container.attrs
    labels = {name: value for name, value in state.container.labels.items() if name.startswith("fraud-filter.")}
    return attributes["Image"], sorted(attributes["Config"]["Env"]), labels


def _running(stack: Stack, service: str) -> list[ServiceState]:
    return [state for state in stack.states() if state.service == service and state.state == "running"]
