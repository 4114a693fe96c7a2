"""The whole demo: the embedded stack, every mode in turn, and the results as a report."""

from __future__ import annotations

import time
from functools import partial

from rich.console import Console

from fraud_filter.config import Settings
from fraud_filter.kafka.input_topic import open_input
from fraud_filter.modes import KNOBS
from fraud_filter.probe.probe import Probe
from lab.demo.live import ModeStatus, open_view
from lab.demo.measure import ModeRun
from lab.demo.plan import DemoPlan
from lab.demo.report import DemoReport
from lab.demo.result import ModeResult
from lab.harness.embedded_stack import EmbeddedStack, embedded_stack, task_slots
from lab.harness.machine import describe_machine
from lab.harness.processes import leave, stop_signals


def run_demo(plan: DemoPlan, settings: Settings, console: Console) -> DemoReport:
    """Runs the demo; everything it started is stopped when it returns, and also when it is interrupted.

    A mode that fails is recorded with its reason, and the logs are kept; the next mode runs all the same.

    Raises:
        FraudFilterError: the stack could not be started.
        KeyboardInterrupt: Ctrl-C.
        SystemExit: SIGTERM or SIGHUP, with the exit code that a shell gives for them (143, 129).
    """
    began = time.monotonic()
    say = partial(console.print, markup=False, highlight=False, soft_wrap=True)
    slots, partitions = task_slots(plan.partitions), plan.partitions
    with (
        stop_signals(leave),
        embedded_stack("demo", settings, say, slots=slots, partitions=partitions, console=console) as stack,
    ):
        own, versions = stack.settings, stack.versions
        named = ", ".join(f"{name} {versions[name.lower()]}" for name in ("Kafka", "Spark", "Java"))
        say(f"{named}; broker at {own.kafka_bootstrap_servers}, logs in {stack.workspace.logs}")
        report = DemoReport(
            plan=plan,
            results=_run_modes(stack, plan, console),
            versions=versions,
            machine=describe_machine(),
            settings=_describe_settings(plan, own),
            topics={"input": own.input_topic, "flagged": own.flagged_topic, "rejected": own.rejected_topic},
            took_s=time.monotonic() - began,
        )
        if not report.ok:
            stack.workspace.keep_logs()
    return report


def _run_modes(stack: EmbeddedStack, plan: DemoPlan, console: Console) -> list[ModeResult]:
    statuses = {mode: ModeStatus(mode) for mode in plan.modes}
    with (
        Probe(stack.settings) as probe,
        open_input(stack.settings) as topic,
        open_view(console, plan, list(statuses.values())) as view,
    ):
        return [ModeRun(stack, plan, probe, topic, view, status).run() for status in statuses.values()]


def _describe_settings(plan: DemoPlan, settings: Settings) -> dict[str, str | int | float]:
    planned: dict[str, str | int | float] = {
        "rate": plan.rate,
        "seconds": plan.seconds,
        "warmup_s": plan.warmup_s,
        "partitions": plan.partitions,
        "flagged_share": plan.flagged_share,
        "malformed_share": plan.malformed_share,
        "seed": plan.seed,
    }
    return planned | {knob: getattr(settings, knob) for knob in ("spark_master", *KNOBS)}
