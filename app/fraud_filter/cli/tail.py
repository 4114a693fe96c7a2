"""`fraud-filter tail`: the decisions, as they stand on their topics."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import OUTPUT_SETTINGS, Settings, output_topics

if TYPE_CHECKING:
    from fraud_filter.tail import Record

_TOPICS = ("flagged", "approved", "rejected", "input")


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
def command(
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
