"""The whole demo: the embedded stack, every mode in turn, and the results as a report."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from rich.console import Console

from fraud_filter.audit.run import audit
from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError
from fraud_filter.modes import KNOBS
from lab.bench.plan import BenchPlan
from lab.bench.start import Start
from lab.demo.live import Announce, ModeStatus, open_view
from lab.demo.report import DemoReport
from lab.demo.result import ModeResult
from lab.demo.rules import describe_skipped, with_velocity
from lab.demo.watch import watched
from lab.harness.embedded_stack import EmbeddedStack, embedded_stack, task_slots
from lab.harness.machine import describe_machine
from lab.harness.outcome import Audited
from lab.harness.processes import leave, stop_signals

#: What the report tells of the plan, besides the rate and the seconds.
_TOLD = ("partitions", "flagged_share", "malformed_share", "fraud_share", "seed")


def demo_plan(**arguments: Any) -> BenchPlan:
    """The demo as a bench: one round at one rate. It warms up at that rate, so that one generator does for all of it.

    Raises:
        UsageError: a value is not accepted; the message names the argument, the value and what to give.
    """
    plan = BenchPlan(rounds=1, repeats=0, **arguments)
    return replace(plan, settle_s=plan.warmup_s, warmup_s=0)


def run_demo(plan: BenchPlan, settings: Settings, console: Console) -> DemoReport:
    """Runs the demo; everything it started is stopped when it returns, and also when it is interrupted.

    A mode that fails is recorded with its reason, and the logs are kept; the next mode runs all the same.

    Raises:
        FraudFilterError: the stack could not be started.
        KeyboardInterrupt: Ctrl-C.
        SystemExit: SIGTERM or SIGHUP, with the exit code that a shell gives for them (143, 129).
    """
    began = time.monotonic()
    settings = with_velocity(settings)
    say = partial(console.print, markup=False, highlight=False, soft_wrap=True)
    slots = task_slots(plan.partitions)
    with stop_signals(leave), embedded_stack("demo", settings, say, slots=slots, console=console) as stack:
        versions = stack.versions
        named = ", ".join(f"{name} {versions[name.lower()]}" for name in ("Kafka", "Spark", "Java"))
        say(f"{named}; broker at {stack.settings.kafka_bootstrap_servers}, logs in {stack.workspace.logs}")
        if skipped := describe_skipped(plan, settings):
            say(skipped)
        report = DemoReport(
            plan=plan,
            results=list(_run_modes(stack, plan, console)),
            versions=versions,
            machine=describe_machine(),
            settings=_describe_settings(plan, stack.settings),
            took_s=time.monotonic() - began,
        )
        if not report.ok:
            stack.workspace.keep_logs()
    return report


def _run_modes(stack: EmbeddedStack, plan: BenchPlan, console: Console) -> Iterator[ModeResult]:
    statuses = [ModeStatus(mode) for mode in plan.contenders]
    quiet = replace(stack, say=lambda _: None)  # the view tells all
    with open_view(console, plan, statuses) as announce:
        for status in statuses:
            result = _run_mode(quiet, plan, status, announce)
            status.finish(result)
            announce(status)
            yield result


def _run_mode(stack: EmbeddedStack, plan: BenchPlan, status: ModeStatus, announce: Announce) -> ModeResult:
    own = stack.with_settings({"mode": status.mode})
    start = Start(own, plan, status.mode, 1, watch=partial(watched, status, announce))
    result = ModeResult(start.run())
    if result.start.error is not None:
        return result
    try:
        found = audit(start.settings, labels=plan.fraud_share > 0)
    except FraudFilterError as error:
        return replace(result, start=replace(result.start, error=str(error)))
    return replace(
        result,
        audit=Audited.of(found),
        flagged=found.written,
        rejected=found.rejected,
        features=found.features,
        detection=found.detection,
    )


def _describe_settings(plan: BenchPlan, settings: Settings) -> dict[str, str | int | float]:
    planned: dict[str, str | int | float] = {
        "rate": plan.rates[0],
        "seconds": plan.seconds,
        "warmup_s": plan.settle_s,
        **{name: getattr(plan, name) for name in _TOLD},
        "rules": settings.rules.name,
    }
    return planned | {knob: getattr(settings, knob) for knob in ("spark_master", *KNOBS)}
