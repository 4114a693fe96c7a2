"""`fraud-filter lab bench`: the contenders round by round on an embedded stack, measured and audited, with a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import Settings
from fraud_filter.errors import EXIT_FAILED, EXIT_OK, UsageError
from lab.bench.names import KNOBS
from lab.cli.console import open_console, tell_end
from lab.cli.options import check_directory, docs_option, load_options, output_option, require_place

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option(
    "--contenders",
    "--modes",
    multiple=True,
    metavar="A,B",
    help="who runs, such as real-time,flink-eos; NAME:SETTING=VALUE: with another setting  [all that can run here]",
)
@load_options()
@click.option(
    "--at-random", is_flag=True, help="payments arrive at random moments (a Poisson process), not in even steps"
)
@click.option("--schema", type=_FILE, metavar="FILE", help="with --query: the records' payment_schema  [payments]")
@click.option("--replay", type=_FILE, metavar="FILE", help="with --query: records to send: CSV, JSON lines or Parquet")
@click.option("--kill", is_flag=True, help="kill each in the middle of each rate's seconds, and start it again at once")
@output_option("bench-report.html, bench-report.json and the plots")
@docs_option("docs/results/bench.md")
@settings_options("query", *KNOBS)
def command(
    settings: Settings,
    contenders: tuple[str, ...],
    rates: str,
    rounds: int,
    output: Path,
    docs: Path | None,
    **load: Any,
) -> int:
    """Set the four modes, Kafka Streams and Apache Flink side by side: latency, cost, audit, at several rates.

    A contender may have other settings: --contenders 'real-time,real-time:linger_ms=5;max_restarts=0'. Besides the
    settings that `fraud-filter config` prints, in lower case and without FRAUD_, it may have partitions=8 of the input
    topic, and checkpoint=DIR for where Spark's checkpoints lie.
    Flink and Kafka Streams take their own options: 'streams-eos:commit.interval.ms=10'.
    With --query the modes that can run it are measured; which can't is said, with the reason.

    Needs Java 17 or 21 and no Docker; nothing is left running. Exit code 1: an audit found lost, repeated or unexpected
    decisions, or a contender failed; with --kill those may decide twice that promise no more.
    """
    from fraud_filter.generator.replay import Replay
    from fraud_filter.generator.source import Steady
    from fraud_filter.query.user_query import load_user_query
    from fraud_filter.schema import load_schema
    from lab.bench.contenders import available, parse_contenders
    from lab.bench.plan import Load, parse_rates
    from lab.bench.report import report_data, table_name, write_docs, write_report
    from lab.bench.run import run_bench
    from lab.bench.table import BENCH, KILLED, result_table, verdict_lines

    under = Load(rates=parse_rates(rates), **load)
    if settings.query:
        load_user_query(settings)  # what is wrong is told before anything starts
        schema = load_schema(under.schema or settings.payment_schema)
        if under.replay:
            Replay(under.replay, schema, pace=Steady(under.rates[0]))
    elif given := [f"--{name}" for name in ("schema", "replay") if load[name]]:
        raise UsageError(f"argument {given[0]}: goes with --query; the filter's bench makes its payments up")
    chosen = available(parse_contenders(contenders), settings)
    place = table_name(settings.query, killed=under.kill)
    require_place(docs, place)
    check_directory(output)
    report = run_bench(chosen, under, settings, click.echo, rounds=rounds)
    data = report_data(report)
    open_console().print(result_table(data["results"], KILLED if under.kill else BENCH))
    for line in () if under.kill else verdict_lines(data["compared"]):
        click.echo(line)
    tell_end(report.problems, lambda: write_report(report, output, "bench"))
    if docs and data["results"]:
        write_docs(docs, data, place)
    return EXIT_OK if report.ok else EXIT_FAILED
