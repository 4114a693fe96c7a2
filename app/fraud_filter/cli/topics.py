"""`fraud-filter topics`: creates the topics that are missing."""

from __future__ import annotations

from pathlib import Path

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import Settings
from fraud_filter.home import HOME


@click.command()
@click.option(
    "--partitions",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="partitions of the input and of the flagged topic, instead of the file's",
)
@click.option(
    "--topics-file",
    type=click.Path(path_type=Path),
    default=HOME / "kafka/topics.yml",
    metavar="FILE",
    help="YAML file with the topics and their settings  [kafka/topics.yml]",
)
@settings_options("kafka_bootstrap_servers", "input_topic", "flagged_topic", "rejected_topic", "kafka_timeout_s")
def command(settings: Settings, partitions: int | None, topics_file: Path) -> None:
    """Create the topics that are missing, with their settings; check the ones that exist."""
    from fraud_filter.kafka.topics import create_topics, load_topics

    created = create_topics(settings, topics_file=topics_file, partitions=partitions)
    for topic in load_topics(settings, topics_file, partitions):
        click.echo(f"{topic.name}: {'created' if topic.name in created else 'exists'}")
