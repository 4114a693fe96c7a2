"""`fraud-filter health`, `probe` and `tail`: the running filter, its latency, and its decisions on their topics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import OUTPUT_SETTINGS, Settings, output_topics
from fraud_filter.errors import EXIT_FAILED, EXIT_OK
from fraud_filter.text.terminal import printable

if TYPE_CHECKING:
    from fraud_filter.tail import Record

_TIMEOUT_S = 3.0
#: What only a filter can tell.
_UNKNOWN = dict.fromkeys(("mode", "query", "state", "last_commit_age_s", "lag_records"))
_TOPICS = ("flagged", "approved", "rejected", "input")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="print JSON")
@settings_options("metrics_host", "metrics_port")
def health(settings: Settings, as_json: bool) -> int:
    """Say whether the filter on this machine is active and keeps up; exit code 0 when it does, else 1."""
    verdict = ask(settings)
    click.echo(json.dumps(verdict, indent=2) if as_json else verdict["line"])
    return EXIT_OK if verdict["healthy"] else EXIT_FAILED


def ask(settings: Settings) -> dict[str, Any]:
    """What the filter at `metrics_host`:`metrics_port` answers at /readyz; `healthy` and `line` where none does."""
    from fraud_filter.metrics.server import get_page

    at = f"http://{settings.metrics_host}:{settings.metrics_port}"
    try:
        _, page = get_page(settings.metrics_host, settings.metrics_port, "/readyz", _TIMEOUT_S)
    except OSError as error:
        return {
            "healthy": False,
            "line": printable(f"no filter answers at {at}: {error.strerror or error}"),
            **_UNKNOWN,
        }
    try:
        verdict: dict[str, Any] = json.loads(page)
        return verdict | {"healthy": bool(verdict["healthy"]), "line": printable(str(verdict["line"]))}
    except (ValueError, TypeError, KeyError, RecursionError):
        line = f"what answers at {at} is no filter: see metrics_port (FRAUD_METRICS_PORT)"
        return {"healthy": False, "line": line, **_UNKNOWN}


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
def probe(settings: Settings, interval_s: float, seconds: float | None, from_beginning: bool, as_json: bool) -> None:
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


@click.command()
@click.option(
    "--topic",
    "topics",
    type=click.Choice(_TOPICS),
    multiple=True,
    help="which topic to print; may be repeated  [default: those of all decisions]",
)
@click.option("--limit", type=click.IntRange(min=1), help="print at most this many records  [default: 10, or all]")
@click.option("--from-beginning", is_flag=True, help="start with the first retained record")
@click.option("--follow", is_flag=True, help="print new records as they arrive, until --limit, Ctrl-C or SIGTERM")
@click.option("--json", "as_json", is_flag=True, help="print one line of JSON for each record")
@settings_options(
    *("kafka_bootstrap_servers", "kafka_timeout_s", "kafka_isolation_level"),
    *("input_topic", *OUTPUT_SETTINGS),
)
def tail(
    settings: Settings, topics: tuple[str, ...], limit: int | None, from_beginning: bool, follow: bool, as_json: bool
) -> None:
    """Print decisions with key, headers and value; by default the 10 that were written last.

    With --from-beginning all that are retained, topic by topic, with --follow those that arrive from now on. Without
    --json characters that act on a terminal are printed as escapes.

    \b
    Example: which rules matched?
      fraud-filter tail --topic flagged --follow --json | jq .value.rules
    """
    from fraud_filter.stop_signals import stop_event
    from fraud_filter.tail import follow as follow_topics
    from fraud_filter.tail import json_line, lines, read_all, read_last

    names = [f"{topic}_topic" for topic in dict.fromkeys(topics)] or output_topics(settings)
    show = json_line if as_json else lines
    if not follow:
        found: Iterator[Record] = (
            read_all(settings, names) if from_beginning else iter(read_last(settings, names, limit or 10))
        )
        _print(map(show, islice(found, limit)))
        return
    with stop_event() as stop:
        found = follow_topics(settings, names, stop, from_beginning=from_beginning)
        _print(map(show, islice(found, limit)))


def _print(shown: Iterator[str]) -> None:
    for text in shown:
        click.echo(text)
