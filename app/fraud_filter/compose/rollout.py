"""Moves the stack's filter to another mode, or to what is new of it, on the same checkpoint.

The stack has one filter, or two replicas of which one is active and one waits, warm.
"""

from __future__ import annotations

import time
from typing import Literal

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from fraud_filter.compose.checks import check_cores, read_rules
from fraud_filter.compose.stack import FILTER, STANDBY, ServiceState, Stack, execute, start
from fraud_filter.config import load
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.modes import MODES
from fraud_filter.query.preflight import state_partitions

PROBE = "probe"
_MODE = "FRAUD_MODE"
_WORKER = "standby-worker"
#: Of their metrics, in their containers: docker-compose.yml fixes them.
_PORTS = {FILTER: "9400", STANDBY: "9400", PROBE: "9401"}
_UP = "fraud_filter_up"
#: Told to a standby (`supervisor.handover`).
_SIGNALS = {"commit": "USR1", "now": "USR2"}
_LOOK_S = 0.5
#: The end of a filter, as docker-compose.yml has it, in seconds.
_END_S = 70


def samples(stack: Stack, service: str) -> list[Sample]:
    """What the page of a service tells; it is asked in its container, as the port may not be published."""
    for state in _running(stack, service):
        code, page = execute(state.container, "healthcheck", "get", _PORTS[service], "/metrics")
        if code == 0:  # it may have ended since it was listed
            return [sample for family in text_string_to_metric_families(page.decode()) for sample in family.samples]
    return []


def total(stack: Stack, service: str, names: tuple[str, ...]) -> float:
    """Sum of the samples of these names on the page of a service."""
    return sum(sample.value for sample in samples(stack, service) if sample.name in names)


def active(stack: Stack) -> str | None:
    """The service of which the filter works on the checkpoint now; None where none does."""
    return next((replica for replica in (FILTER, STANDBY) if total(stack, replica, (_UP,))), None)


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
        # Not by `docker kill`: Docker takes any signal for a stop by hand, and no longer restarts the container.
        execute(state.container, "sh", "-c", f"kill -{_SIGNALS[at]} 1")
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


def switch(stack: Stack, mode: str, timeout_s: float, *, now: bool = False) -> tuple[str, float]:
    """Changes the mode in the stack's `.env`, and that of filter and probe, and waits until payments are decided.

    With a standby it is a handover (`roll_out`); else the filter is stopped and started again. The filter itself
    repairs the checkpoint where the new mode could not start from it. A switch that was killed is gone on with by the
    next one, or by `fraud-filter up`: the mode stands in `.env`, and no step depends on the one before.

    Args:
        timeout_s: seconds for each of the steps.
        now: at a handover, as of `roll_out`.

    Returns:
        The mode that it was in, and the seconds that it took.

    Raises:
        UsageError: the stack does not run, has too few cores for the mode, or the mode can't compute the features of
            the rules, which may not be skipped; nothing was changed.
        FraudFilterError: the filter did not become healthy, or decided nothing, within `timeout_s` seconds.
    """
    running = _running_mode(stack)
    if running == mode:
        return mode, 0.0
    old = running or stack.value(_MODE)
    settings = load({"mode": mode}, env_file=stack.env)
    rules = read_rules(stack, settings)
    if rules.for_mode(settings).features and MODES[settings.mode].lacks_features:
        raise UsageError(
            f"{old} mode can't be switched to {mode}, which can't compute the features of the rules: set "
            "FRAUD_FEATURES_UNSUPPORTED=skip to run it without the rules that use them"
        )
    check_cores(stack.values, mode, state_partitions(rules.features, settings))
    stack.change(_MODE, mode)
    try:
        return old, roll_out(stack, timeout_s, now=now)
    except FraudFilterError:
        if running and _running_mode(stack) == running:  # a standby could not become ready in the other mode
            stack.change(_MODE, running)
        raise


def roll_out(stack: Stack, timeout_s: float, *, now: bool = False) -> float:
    """Replaces the filter by one of the settings, files and images that are there now; returns the seconds it took.

    With a standby that one is replaced first; once it is warm the active one hands over to it, and when it has decided
    payments the former one is replaced, too. Until then that one waits, warm, for a rollback: should the new one fail,
    it takes over. Without a standby the filter is stopped and started again.

    Args:
        timeout_s: seconds for each of the steps; the wait for the active filter's next commit comes on top.
        now: the active one ends at once, and what it had not committed is read again.

    Raises:
        UsageError: the stack does not run.
        FraudFilterError: a filter did not become healthy, or decided nothing, within `timeout_s` seconds.
    """
    began = time.monotonic()
    mode = _running_mode(stack)
    former = active(stack)
    if former and stack.has_standby and any(state.service == STANDBY for state in stack.states()):
        following = warm_beside(stack, former, timeout_s)
        if alike(stack):
            return 0.0
        settings = load(env_file=stack.env)
        wait_s = 0.0 if now else MODES[mode].commit_interval_s(settings)  # type: ignore[index]
        hand_over(stack, following, "now" if now else "commit", timeout_s + wait_s)
        _await_decisions(stack, following, timeout_s)
    else:
        former = None
    moved = (former or FILTER, PROBE)
    start(stack, ("--no-deps", *moved), list(moved), timeout_s)
    if not former:
        _await_decisions(stack, FILTER, timeout_s)
    return time.monotonic() - began


def _running_mode(stack: Stack) -> str | None:
    """The active filter's mode; None when none runs although the stack does, as after a switch that was killed.

    Raises:
        UsageError: nothing of the stack runs.
    """
    running = {state.service: state for state in stack.states() if state.state == "running"}
    if not running:
        raise UsageError("the stack does not run: give FRAUD_MODE in .env, and call `fraud-filter up`")
    replica = active(stack) or FILTER
    if replica not in running:
        return None
    # A name without `=` is one that has no value.
    variables = dict(line.partition("=")[::2] for line in running[replica].container.attrs["Config"]["Env"])
    return str(variables.get(_MODE, ""))


def _await_decisions(stack: Stack, service: str, timeout_s: float) -> None:
    """Until the filter of a service has committed or decided; real-time mode commits only every few minutes."""
    deadline = time.monotonic() + timeout_s
    decided = tuple(f"fraud_filter_{kind}_records_total" for kind in ("flagged", "approved", "rejected"))
    before = total(stack, PROBE, decided)
    while time.monotonic() < deadline:
        if total(stack, service, ("fraud_filter_commits_total",)):
            return
        if total(stack, PROBE, decided) > before:
            return
        time.sleep(_LOOK_S)
    raise FraudFilterError("the filter is healthy, and has neither committed nor decided anything: do records arrive?")
