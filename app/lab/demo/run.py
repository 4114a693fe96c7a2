"""The whole demo: the embedded stack, every mode in turn, and the results as a report."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from rich.console import Console

from fraud_filter.config import Settings
from fraud_filter.kafka.input_topic import open_input
from fraud_filter.kafka.topics import create_topics
from fraud_filter.modes import KNOBS
from fraud_filter.probe.probe import Probe
from lab.demo.live import ModeStatus, open_view
from lab.demo.measure import Equipment, ModeRun
from lab.demo.plan import DemoPlan
from lab.demo.programs import demo_settings
from lab.demo.report import DemoReport
from lab.demo.result import ModeResult
from lab.harness.broker import Broker
from lab.harness.machine import describe_machine, describe_versions, java_version, kafka_version
from lab.harness.supplies import get_supplies
from lab.harness.workspace import Workspace


def run_demo(plan: DemoPlan, settings: Settings, console: Console) -> DemoReport:
    """Runs the demo; everything it started is stopped when it returns, and also when it is interrupted.

    A mode that fails is recorded with its reason, and the logs are kept; the next mode runs all the same.

    Raises:
        FraudFilterError: the stack could not be started.
        KeyboardInterrupt: Ctrl-C.
        SystemExit: SIGTERM or SIGHUP, with the exit code that a shell gives for them (143, 129).
    """
    began = time.monotonic()
    with _exit_on_signals(), Workspace("fraud-filter-demo-") as workspace:
        supplies = get_supplies(lambda line: _say(console, line), console)
        versions = describe_versions(kafka=kafka_version(supplies.kafka_jars), java=java_version(supplies.java_home))
        with _kafka(Broker(workspace, java_home=supplies.java_home, jars=supplies.kafka_jars), console) as broker:
            own = demo_settings(settings, plan, broker.address)
            create_topics(own, partitions=plan.partitions)
            named = ", ".join(f"{name} {versions[name.lower()]}" for name in ("Kafka", "Spark", "Java"))
            _say(console, f"{named}; broker at {broker.address}, logs in {workspace.logs}")
            results = _run_modes(Equipment(plan, own, workspace, supplies.java_home, broker.child), console)
        report = DemoReport(
            plan=plan,
            results=results,
            versions=versions,
            machine=describe_machine(),
            settings=_describe_settings(plan, own),
            topics={"input": own.input_topic, "flagged": own.flagged_topic, "rejected": own.rejected_topic},
            took_s=time.monotonic() - began,
        )
        if not report.ok:
            workspace.keep_logs()
    return report


@contextmanager
def _kafka(broker: Broker, console: Console) -> Iterator[Broker]:
    try:
        with console.status("Starting Kafka"):
            broker.start()
        yield broker
    finally:
        broker.stop()


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _run_modes(equipment: Equipment, console: Console) -> list[ModeResult]:
    statuses = {mode: ModeStatus(mode) for mode in equipment.plan.modes}
    with (
        Probe(equipment.settings) as probe,
        open_input(equipment.settings) as topic,
        open_view(console, equipment.plan, list(statuses.values())) as view,
    ):
        return [ModeRun(equipment, probe, topic, view, status).run() for status in statuses.values()]


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


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Within it SIGTERM and SIGHUP end the program as an exit does, through every clean-up on the way."""

    def leave(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
