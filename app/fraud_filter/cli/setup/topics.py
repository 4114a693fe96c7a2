"""`fraud-filter topics`: creates the topics that are missing."""

from __future__ import annotations

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import OUTPUT_SETTINGS, Settings


@click.command()
@click.option(
    "--partitions",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="partitions of the input and of the flagged and the approved topic, instead of the file's",
)
@settings_options(
    *("kafka_bootstrap_servers", "input_topic", *OUTPUT_SETTINGS, "topics_file", "kafka_timeout_s"),
)
def command(settings: Settings, partitions: int | None) -> None:
    """Create the topics that are missing, with their settings; check the ones that exist."""
    from fraud_filter.kafka.topics import create_topics, load_topics

    created = create_topics(settings, partitions=partitions)
    for topic in load_topics(settings, partitions):
        click.echo(f"{topic.name}: {'created' if topic.name in created else 'exists'}")
