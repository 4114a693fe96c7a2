"""Moves the stack's filter to another mode on the same checkpoint."""

from __future__ import annotations

import time

from prometheus_client.parser import text_string_to_metric_families

from fraud_filter.compose.checks import check_cores
from fraud_filter.compose.stack import Stack
from fraud_filter.compose.waiting import start
from fraud_filter.errors import FraudFilterError, UsageError

_FILTER = "fraud-filter"
_PROBE = "probe"
_MOVED = (_FILTER, _PROBE)
#: Of their metrics, in their containers: docker-compose.yml fixes them.
_PORTS = {_FILTER: "9400", _PROBE: "9401"}
_MODE = "FRAUD_MODE"
_LOOK_S = 0.5


def switch(stack: Stack, mode: str, timeout_s: float) -> tuple[str, float]:
    """Changes the mode in the stack's `.env`, restarts filter and probe and waits until payments are decided.

    The filter itself repairs the checkpoint where the new mode could not start from it. A switch that was killed is
    gone on with by the next one, or by `make up`: the mode stands in `.env`, and no step depends on the one before.

    Returns:
        The mode that it was in, and the seconds that it took.

    Raises:
        UsageError: the stack does not run, or has too few cores for the mode; nothing was changed.
        FraudFilterError: the filter did not become healthy, or decided nothing, within `timeout_s` seconds.
    """
    began = time.monotonic()
    running = _running_mode(stack)
    if running == mode:
        return mode, 0.0
    old = running or stack.value(_MODE)
    check_cores(stack.values, mode)
    stack.change(_MODE, mode)
    start(stack, ("--no-deps", *_MOVED), list(_MOVED), timeout_s)
    _await_decisions(stack, began + timeout_s)
    return old, time.monotonic() - began


def _running_mode(stack: Stack) -> str | None:
    """The filter's mode; None when it does not run although the stack does, as after a switch that was killed.

    Raises:
        UsageError: nothing of the stack runs.
    """
    running = [state for state in stack.states() if state.state == "running"]
    for state in running:
        if state.service == _FILTER:
            variables = dict(line.split("=", 1) for line in state.container.attrs["Config"]["Env"])
            return str(variables.get(_MODE, ""))
    if not running:
        raise UsageError("the stack does not run: give FRAUD_MODE in .env, and make up")
    return None


def _await_decisions(stack: Stack, deadline: float) -> None:
    """Until something was committed or decided; real-time mode commits only every few minutes."""
    while time.monotonic() < deadline:
        commits = _total(stack, _FILTER, ("fraud_filter_commits_total",))
        decided = ("fraud_filter_flagged_records_total", "fraud_filter_rejected_records_total")
        if commits or _total(stack, _PROBE, decided):
            return
        time.sleep(_LOOK_S)
    raise FraudFilterError("the filter is healthy, and has neither committed nor decided anything: do payments arrive?")


def _total(stack: Stack, service: str, names: tuple[str, ...]) -> float:
    """Sum of the samples on the page of a service; it is asked in its container, as the port may not be published."""
    for state in stack.states():
        if state.service == service and state.state == "running":
            code, page = state.container.exec_run(["healthcheck", "get", _PORTS[service], "/metrics"])
            families = text_string_to_metric_families(page.decode()) if code == 0 else ()
            return sum(sample.value for family in families for sample in family.samples if sample.name in names)
    return 0.0
