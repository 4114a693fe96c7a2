"""`fraud-filter experiment`: what a changed setting does to a mode, side by side in one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import click

from fraud_filter.cli.files import results_option
from fraud_filter.cli.options import settings_options
from fraud_filter.config import ModeName, Settings
from fraud_filter.errors import EXIT_FAILED, EXIT_OK
from fraud_filter.modes import KNOBS
from lab.cli.console import open_console
from lab.cli.load_options import load_options


@click.command()
@click.argument("mode", type=click.Choice(get_args(ModeName)))
@click.argument("changes", nargs=-1, required=True, metavar="CHANGE...")
@load_options(rates="100", seconds=30)
@results_option("experiment.json")
@settings_options(*KNOBS)
def command(
    settings: Settings,
    mode: ModeName,
    changes: tuple[str, ...],
    rates: str,
    output: Path,
    **arguments: Any,
) -> int:
    """Run MODE as it is and with each CHANGE in turn, round by round: latency, processor time, audit, and the ratios.

    A CHANGE is SETTING=VALUE, several joined by `;`, such as linger_ms=5; also partitions=8 for the
    input topic, rule_count=200 and blocked_ids=1000000 for the rules, checkpoint=DIR for where Spark's checkpoints lie.
    Runs an embedded Kafka and Spark; nothing is left running. Exit code 1: something was lost or unexpected, or a start
    failed.
    """
    from lab.bench.plan import BenchPlan, parse_rates
    from lab.experiment.change import parse_changes
    from lab.experiment.result import result_table, summarise
    from lab.experiment.run import run_experiment

    plan = BenchPlan(contenders=(mode,), rates=parse_rates(rates), **arguments)
    trials = run_experiment(mode, parse_changes(changes), plan, settings, click.echo)
    results = summarise(trials)
    output.write_text(json.dumps({"mode": mode, "results": results}, indent=2) + "\n", encoding="utf-8")
    open_console().print(result_table(results))
    click.echo(f"written: {output.resolve()}")
    return EXIT_OK if all(trial.start.ok for trial in trials) else EXIT_FAILED
