"""`fraud-filter lab bench`: the contenders round by round on an embedded stack, measured and audited, with a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fraud_filter.cli.files import docs_option
from fraud_filter.cli.options import settings_options
from fraud_filter.config import Settings
from fraud_filter.errors import EXIT_FAILED, EXIT_OK
from fraud_filter.modes import KNOBS
from lab.cli.console import open_console, tell_end
from lab.cli.load_options import load_options


@click.command()
@click.option("--contenders", "--modes", default="", metavar="A,B", help="who runs  [all that can run here]")
@load_options(rates="100,1000,5000", seconds=60)
@click.option(
    "--output",
    default=Path(),
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="where bench-report.html, bench-report.json and the plots go  [.]",
)
@docs_option("docs/results/bench.md", "bench")
@settings_options(*KNOBS)
def command(settings: Settings, contenders: str, rates: str, docs: Path | None, **arguments: Any) -> int:
    """Set the four modes, a plain client and Apache Flink side by side: latency, cost, audit, at several rates.

    Needs Java 17 or 21 and no Docker; nothing is left running. Exit code 1: an audit found lost or unexpected
    payments, or a contender failed.
    """
    from fraud_filter.text.outputs import check_directory
    from lab.bench.contenders import available
    from lab.bench.names import CONTENDERS, parse_names
    from lab.bench.plan import BenchPlan, parse_rates

    named = parse_names(contenders, CONTENDERS, "--contenders", "a contender")
    plan = BenchPlan(contenders=named, rates=parse_rates(rates), **arguments)
    plan = replace(plan, contenders=available(plan.contenders, min(plan.rates) / plan.partitions))
    check_directory("--output", plan.output)
    return _run(plan, settings, docs)


def _run(plan: Any, settings: Settings, docs: Path | None) -> int:
    from fraud_filter.text.tables import write_between
    from lab.bench.results.report import report_data, write_report
    from lab.bench.results.table import markdown_results, ratio_lines, result_table
    from lab.bench.run import run_bench

    report = run_bench(plan, settings, click.echo)
    data = report_data(report)
    open_console().print(result_table(data["results"]))
    for line in ratio_lines(data["ratios"], min(plan.rates)):
        click.echo(line)
    tell_end(report.problems, lambda: write_report(report))
    if docs and data["results"]:
        write_between(docs, "bench", markdown_results(data["results"]))
    return EXIT_OK if report.ok else EXIT_FAILED
