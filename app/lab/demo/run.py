"""The demo: a bench of one round at one rate, watched live."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

from rich.console import Console

from fraud_filter.config import ModeName, Settings
from fraud_filter.home import HOME
from fraud_filter.modes import MODES
from fraud_filter.rules.ruleset import read_rules
from fraud_filter.schema import load_schema
from lab.bench.contenders import parse_contenders
from lab.bench.launch import Enter
from lab.bench.plan import Load
from lab.bench.report import Report
from lab.bench.result import StartResult
from lab.bench.run import run_rounds
from lab.demo.live import ModeStatus, open_view, watched
from lab.harness.embedded_stack import embedded_stack, task_slots
from lab.harness.processes import leave, stop_signals

#: The shipped rules that know what a card did before.
VELOCITY_RULES = HOME / "app/rules-velocity.yml"


def demo_load(rate: float, *, warmup_s: float, **arguments: Any) -> Load:
    """The load of one rate. It warms up at that rate, so that one generator does for all of it.

    Raises:
        UsageError: the shares are more than 1 together.
    """
    return Load(rates=(rate,), settle_s=warmup_s, warmup_s=0, **arguments)


def run_demo(modes: Sequence[ModeName], load: Load, settings: Settings, console: Console) -> Report:
    """Runs the demo; everything it started is stopped when it returns, and also when it is interrupted.

    Raises:
        FraudFilterError: the stack could not be started.
        KeyboardInterrupt: Ctrl-C.
        SystemExit: SIGTERM or SIGHUP, with the exit code that a shell gives for them (143, 129).
    """
    settings = with_velocity(settings)
    say = partial(console.print, markup=False, highlight=False, soft_wrap=True)
    slots = task_slots(load.partitions)
    with stop_signals(leave), embedded_stack("demo", settings, say, slots=slots, console=console) as stack:
        named = ", ".join(f"{name} {stack.versions[name.lower()]}" for name in ("Kafka", "Spark", "Java"))
        say(f"{named}; broker at {stack.settings.kafka_bootstrap_servers}, logs in {stack.workspace.logs}")
        if skipped := describe_skipped(modes, settings):
            say(skipped)
        statuses = {mode: ModeStatus(mode) for mode in modes}
        quiet = replace(stack, say=lambda _: None)  # the view tells all
        with open_view(console, load, list(statuses.values())) as announce:

            def watch(mode: str, own: Settings) -> AbstractContextManager[Enter]:
                return watched(statuses[mode], announce, own)  # type: ignore[index]  # one of the modes

            def ended(start: StartResult) -> None:
                status = statuses[start.contender]  # type: ignore[index]  # one of the modes
                status.finish(start)
                announce(status)

            return run_rounds(quiet, parse_contenders(modes), load, watch=watch, ended=ended)


def with_velocity(settings: Settings) -> Settings:
    """The settings with the shipped rules that use velocity, where the user has named no rules."""
    if "rules" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"rules": VELOCITY_RULES, "features_unsupported": "skip"})


def describe_skipped(modes: Sequence[ModeName], settings: Settings) -> str:
    """Which modes leave out which rules; empty where they run all, or refuse them themselves."""
    rules, _ = read_rules(settings.rules, load_schema(settings.payment_schema))  # what is wrong each mode tells itself
    skipped = [rule.name for rule in rules.rules if rules.uses_features(rule)]
    without = [mode.name for mode in MODES.values() if mode.name in modes and mode.lacks_features]
    if not skipped or not without or settings.features_unsupported != "skip":
        return ""
    return f"{', '.join(without)}: without the rules over velocity ({', '.join(skipped)}), which need real-time mode"
