"""`fraud-filter demo`: every mode in turn on an embedded stack, with a live view, a table and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fraud_filter.cli.options import rate_option, settings_options
from fraud_filter.config import Settings
from fraud_filter.errors import EXIT_FAILED, EXIT_OK, UsageError
from fraud_filter.modes import KNOBS
from lab.cli.console import open_console, tell_end


@click.command()
@click.option("--modes", default="", metavar="A,B", help="modes to run, in this order  [all four]")
@click.option("--seconds", default=30.0, show_default=True, help="seconds to measure in each mode")
@rate_option(100.0)
@click.option("--warmup", "warmup_s", default=12.0, show_default=True, help="seconds left out after the first output")
@click.option("--partitions", default=2, show_default=True, help="partitions of the input topic")
@click.option("--flagged-share", default=0.5, show_default=True, help="share made to match a rule, 0 to 1")
@click.option("--malformed-share", default=0.01, show_default=True, help="share of unreadable records, 0 to 1")
@click.option("--fraud-share", default=0.05, show_default=True, help="share of labelled fraud, 0 to 1")
@click.option("--seed", default=1, show_default=True, help="seed of the payment generator")
@click.option(
    "--output",
    default=Path(),
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="where demo-report.html and demo-report.json go  [.]",
)
@click.option("--png", type=click.Path(path_type=Path), metavar="FILE", help="also save the plot as PNG")
@settings_options(*KNOBS, "rules")
def command(settings: Settings, modes: str, rate: float, png: Path | None, **arguments: Any) -> int:
    """Run every mode in turn on an embedded Kafka and Spark, measure and audit it, and write a report.

    Needs Java 17 or 21 and no Docker; nothing is left running. Exit code 1: an audit found lost or unexpected
    payments, or a mode failed. Without rules of your own it takes those with velocity (app/rules-velocity.yml):
    real-time mode runs all of them, the others those that need no features.
    """
    from fraud_filter.text.outputs import check_directory
    from lab.bench.names import parse_modes
    from lab.demo.report import write_report
    from lab.demo.rules import detection_table
    from lab.demo.run import demo_plan, run_demo
    from lab.demo.table import result_table

    plan = demo_plan(contenders=parse_modes(modes), rates=(rate,), **arguments)
    check_directory("--output", plan.output)
    if png:
        if png.suffix.lower() != ".png" or png.is_dir():
            raise UsageError(f"argument --png: {str(png)!r} is not accepted: give a file name that ends in .png")
        check_directory("--png", png.parent)
    console = open_console()
    report = run_demo(plan, settings, console)
    console.print(result_table(report.results, console.width))
    if found := detection_table(report.results):
        console.print(found)
    tell_end(report.problems, lambda: write_report(report, png))
    return EXIT_OK if report.ok else EXIT_FAILED
