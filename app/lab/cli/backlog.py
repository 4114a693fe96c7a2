"""`fraud-filter backlog`: how fast, and in how much memory, each mode catches up after an outage."""

from __future__ import annotations

from pathlib import Path

import click

from fraud_filter.cli.files import docs_option, results_option
from fraud_filter.cli.options import rate_option, settings_options
from fraud_filter.config import Settings
from fraud_filter.errors import EXIT_FAILED, EXIT_OK
from lab.cli.console import open_console

#: What bounds the memory of a mode that has much to read.
_BOUNDS = ("max_offsets_per_trigger", "continuous_interval", "real_time_duration", "kafka_source_options", "spark_conf")


@click.command()
@click.option("--modes", default="", metavar="MODE,...", help="modes to run  [all]")
@click.option("--records", type=click.IntRange(min=1), default=2_000_000, show_default=True, help="payments that wait")
@rate_option(300.0, "payments per second that come in meanwhile")
@results_option("backlog.json")
@docs_option("docs/operations.md", "backlog")
@settings_options(*_BOUNDS)
def command(settings: Settings, modes: str, records: int, rate: float, output: Path, docs: Path | None) -> int:
    """Work off a backlog, as after an outage, in each mode: time to catch up, peak memory, audit.

    Runs an embedded Kafka and Spark; nothing is left running. Exit code 1: something was lost or unexpected, or a
    mode did not catch up.
    """
    from fraud_filter.text.tables import write_between
    from lab.backlog.result import markdown_table, result_table, write_backlog
    from lab.backlog.run import run_backlog
    from lab.bench.names import parse_modes

    results = run_backlog(settings, parse_modes(modes), records=records, rate=rate, say=click.echo)
    write_backlog(output, results, {name: getattr(settings, name) for name in _BOUNDS})
    if docs:
        write_between(docs, "backlog", markdown_table(results))
    open_console().print(result_table(results))
    click.echo(f"written: {output.resolve()}")
    return EXIT_OK if all(result.ok for result in results) else EXIT_FAILED
