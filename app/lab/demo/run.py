"""The demo: a bench of one round at one rate, watched live."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rich.console import Console
from rich.live import Live

from fraud_filter.config import ModeName, Settings
from fraud_filter.home import HOME
from fraud_filter.modes import MODES
from fraud_filter.rules.ruleset import read_rules
from fraud_filter.schema import load_schema
from lab.bench.contenders import parse_contenders
from lab.bench.plan import Load
from lab.bench.report import Report
from lab.bench.run import run_rounds
from lab.demo.live import ModeStatus, live_table, watched
from lab.harness.embedded_stack import embedded_stack

#: The shipped rules that know what a card did before.
VELOCITY_RULES = HOME / "app/rules-velocity.yml"


def demo_load(rate: float, *, warmup_s: float, **arguments: Any) -> Load:
    """The load of one rate. It warms up at that rate, so that one generator does for all of it."""
    return Load(rates=(rate,), settle_s=warmup_s, warmup_s=0, **arguments)


def run_demo(modes: Sequence[ModeName], load: Load, settings: Settings, console: Console) -> Report:
    """Runs the demo; everything it started is stopped when it returns, and also when it is interrupted."""
    settings = with_velocity(settings)
    say = partial(console.print, markup=False, highlight=False, soft_wrap=True)
    with embedded_stack("demo", settings, say, partitions=load.partitions, console=console) as stack:
        named = ", ".join(f"{name} {stack.versions[name.lower()]}" for name in ("Kafka", "Spark", "Java"))
        say(f"{named}; broker at {stack.settings.kafka_bootstrap_servers}, logs in {stack.workspace.logs}")
        if skipped := describe_skipped(modes, settings):
            say(skipped)
        contenders = parse_contenders(modes)
        if not console.is_terminal:  # a log: a line for each step
            return run_rounds(stack, contenders, load)
        quiet = replace(stack, say=lambda _: None)  # the table tells all
        statuses = {str(mode): ModeStatus(mode) for mode in modes}
        table = partial(live_table, load, [*statuses.values()], time.monotonic())
        with Live(console=console, get_renderable=table, refresh_per_second=4):
            return run_rounds(
                quiet,
                contenders,
                load,
                watch=lambda mode, own: watched(statuses[mode], own),
                ended=lambda start: statuses[start.contender].finish(start),
            )


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
