"""`fraud-filter transitions`: every change of the mode on one checkpoint, under load, audited."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from fraud_filter.cli.files import docs_option, results_option
from fraud_filter.cli.options import rate_option, settings_options
from fraud_filter.config import Settings
from fraud_filter.errors import EXIT_FAILED, EXIT_OK
from lab.cli.console import open_console


@click.command()
@click.option("--only", default="", metavar="FROM:TO,...", help="changes to run  [all twelve]")
@click.option(
    "--stop",
    default="clean,kill",
    show_default=True,
    metavar="KIND,...",
    help="how the old mode ends: clean (SIGTERM), kill (SIGKILL of all its processes), handover (at a commit, to the "
    "new mode that is warm by then; real-time mode commits after --real-time-duration)",
)
@rate_option(300.0)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=6.0,
    show_default=True,
    help="under load before each stop and after each start",
)
@results_option("transitions.json")
@click.option("--add", is_flag=True, help="keep what the file holds about other changes")
@docs_option("docs/modes.md", "transitions")
@click.option(
    "--below",
    default="",
    metavar="URI",
    help="where the checkpoints go, on any Hadoop file system, and stay  [this machine's disk, where they are removed]",
)
@settings_options(
    "rules", "payment_schema", "micro_batch_interval", "async_progress_interval_ms", "continuous_interval",
    "real_time_duration", "standby_warm_up_s", "spark_conf", "checkpoint_lock_timeout_s",
)  # fmt: skip
def command(
    settings: Settings,
    only: str,
    stop: str,
    rate: float,
    seconds: float,
    output: Path,
    add: bool,
    docs: Path | None,
    below: str,
) -> int:
    """Change the mode on one checkpoint while payments keep coming, all twelve ways, with an audit after each.

    Runs an embedded Kafka and Spark; nothing is left running. Exit code 1: something was lost or unexpected, or a
    mode did not start. Duplicates are counted, and are no fault. Rules may have a model, whose scores are audited, but
    no features: one mode alone computes them.
    """
    from fraud_filter.config import refused
    from fraud_filter.rules.ruleset import load_rules
    from fraud_filter.schema import load_schema
    from fraud_filter.text.outputs import read_items
    from fraud_filter.text.tables import write_between
    from lab.bench.names import parse_kinds
    from lab.transitions.result import FIELDS, StopKind, markdown_table, result_table, write_transitions
    from lab.transitions.route import order_changes, parse_changes
    from lab.transitions.stage import run_on_stage

    changes = order_changes(parse_changes(only))
    known: tuple[StopKind, ...] = get_args(StopKind)
    stops = parse_kinds(stop, known, "--stop", "a way to end")
    if load_rules(settings.rules, load_schema(settings.payment_schema)).features:
        raise refused(
            "rules", settings.rules, "has features, whose state only real-time mode has: no other mode can follow it",
            "name rules without features, or try `fraud-filter takeover --modes real-time --what kill,handover`",
        )  # fmt: skip
    if add:
        read_items(output, FIELDS)  # before the work rather than after it
    results = run_on_stage(settings, changes, stops, rate=rate, seconds=seconds, below=below, say=click.echo)
    items = write_transitions(output, results, add=add)
    if docs:
        write_between(docs, "transitions", markdown_table(items))
    open_console().print(result_table(results))
    click.echo(f"written: {output.resolve()}")
    return EXIT_OK if all(result.ok for result in results) else EXIT_FAILED
