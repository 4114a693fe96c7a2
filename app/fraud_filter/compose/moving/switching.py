"""Moves the stack's filter to another mode, or to what is new of it, on the same checkpoint."""

from __future__ import annotations

import time
from collections.abc import Iterable

from fraud_filter.compose.checks import check_cores, read_rules
from fraud_filter.compose.moving import replicas
from fraud_filter.compose.stack import FILTER, Stack
from fraud_filter.compose.waiting import start
from fraud_filter.config import load
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.modes import MODES
from fraud_filter.query.preflight import state_partitions

_MODE = "FRAUD_MODE"
_LOOK_S = 0.5


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
    check_cores(stack.values, mode, state_partitions(rules, settings))
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
        now: the active one ends at once, and what it had not committed is decided again.

    Raises:
        UsageError: the stack does not run.
        FraudFilterError: a filter did not become healthy, or decided nothing, within `timeout_s` seconds.
    """
    began = time.monotonic()
    mode = _running_mode(stack)
    former = replicas.active(stack)
    if former and replicas.are_two(stack):
        following = replicas.warm_beside(stack, former, timeout_s)
        if replicas.alike(stack):
            return 0.0
        settings = load(env_file=stack.env)
        wait_s = 0.0 if now else MODES[mode].commit_interval_s(settings)  # type: ignore[index]
        replicas.hand_over(stack, following, "now" if now else "commit", timeout_s + wait_s)
        _await_decisions(stack, following, timeout_s)
    else:
        former = None
    moved = (former or FILTER, replicas.PROBE)
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
    replica = replicas.active(stack) or FILTER
    if replica not in running:
        return None
    # A name without `=` is one that has no value.
    variables = _pairs(running[replica].container.attrs["Config"]["Env"])
    return str(variables.get(_MODE, ""))


def _pairs(lines: Iterable[str]) -> dict[str, str]:
    return dict(line.partition("=")[::2] for line in lines)


def _await_decisions(stack: Stack, service: str, timeout_s: float) -> None:
    """Until the filter of a service has committed or decided; real-time mode commits only every few minutes."""
    deadline = time.monotonic() + timeout_s
    decided = tuple(f"fraud_filter_{kind}_records_total" for kind in ("flagged", "approved", "rejected"))
    before = replicas.total(stack, replicas.PROBE, decided)
    while time.monotonic() < deadline:
        if replicas.total(stack, service, ("fraud_filter_commits_total",)):
            return
        if replicas.total(stack, replicas.PROBE, decided) > before:
            return
        time.sleep(_LOOK_S)
    raise FraudFilterError("the filter is healthy, and has neither committed nor decided anything: do records arrive?")
