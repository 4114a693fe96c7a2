"""`fraud-filter probe`: end-to-end latency, in the terminal and on /metrics, until it is stopped."""

from __future__ import annotations

import json
from functools import partial

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import OUTPUT_SETTINGS, Settings


@click.command()
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    help="seconds between two lines",
)
@click.option("--seconds", type=click.FloatRange(min=0.1), help="end after so many seconds instead of at a signal")
@click.option("--from-beginning", is_flag=True, help="read all retained records, not only new ones")
@click.option("--json", "as_json", is_flag=True, help="print the final metrics as JSON, and the lines on stderr")
@settings_options(
    *(
        "mode",
        "query_name",
        "kafka_bootstrap_servers",
        "kafka_timeout_s",
        "kafka_isolation_level",
        "input_topic",
        *OUTPUT_SETTINGS,
    ),
    *("metrics_host", "probe_port", "latency_objective_ms"),
)
def command(settings: Settings, interval_s: float, seconds: float | None, from_beginning: bool, as_json: bool) -> None:
    """Measure the time from the append of a record to the append of its decision.

    Prints a line each interval, serves Prometheus metrics on FRAUD_METRICS_HOST:FRAUD_PROBE_PORT, and ends with a
    summary at Ctrl-C, SIGTERM or after --seconds. --mode and --query-name are the labels of the metrics.
    """
    from fraud_filter.probe.probe import run_probe

    figures = run_probe(
        settings,
        interval_s=interval_s,
        seconds=seconds,
        from_beginning=from_beginning,
        say=partial(click.echo, err=as_json),
    )
    if as_json:
        click.echo(json.dumps(figures, indent=2))
