"""`fraud-filter demo`: every mode in turn on an embedded stack, with a live view, a table and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import Settings
from fraud_filter.errors import EXIT_FAILED, EXIT_OK
from lab.bench.names import KNOBS
from lab.cli.console import open_console, tell_end
from lab.cli.options import Number, check_directory, default_option, load_options, output_option, rate_option


@click.command()
@click.option("--modes", default="", metavar="A,B", help="modes to run, in this order  [all four]")
@default_option("--seconds", type=Number(0, min_open=True), default=30.0, help="seconds to measure in each mode")
@rate_option(100.0)
@load_options("warmup", "partitions", "flagged_share", "seed")
@default_option("--malformed-share", type=Number(0, 1), default=0.01, help="share of unreadable records")
@default_option("--fraud-share", type=Number(0, 1), default=0.05, help="share of labelled fraud")
@output_option("demo-report.html and demo-report.json")
@settings_options(*KNOBS, "rules")
def command(settings: Settings, modes: str, rate: float, output: Path, **load: Any) -> int:
    """Run every mode in turn on an embedded Kafka and Spark, measure and audit it, and write a report.

    Needs Java 17 or 21 and no Docker; nothing is left running. Exit code 1: an audit found lost or unexpected
    payments, or a mode failed. Without rules of your own it takes those with velocity (app/rules-velocity.yml):
    real-time mode runs all of them, the others those that need no features.
    """
    from lab.bench.names import parse_modes
    from lab.bench.report import report_data, write_report
    from lab.bench.table import DEMO, detection_table, result_table
    from lab.demo.run import demo_load, run_demo

    chosen, under = parse_modes(modes), demo_load(rate, **load)
    check_directory(output)
    console = open_console()
    report = run_demo(chosen, under, settings, console)
    results = report_data(report)["results"]
    console.print(result_table(results, DEMO))
    if found := detection_table(results):
        console.print(found)
    tell_end(report.problems, lambda: write_report(report, output, "demo"))
    return EXIT_OK if report.ok else EXIT_FAILED
