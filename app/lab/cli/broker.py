"""`fraud-filter lab broker`: an embedded Kafka broker with the topics, until it is stopped."""

from __future__ import annotations

from pathlib import Path

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import OUTPUT_SETTINGS, Settings, output_topics
from lab.cli.options import default_option


@click.command()
@default_option("--port", type=click.IntRange(0, 65535), default=9092, help="broker's port; 0 takes a free one")
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="keep the data here for the next start; without it they are removed at the end",
)
@settings_options("input_topic", *OUTPUT_SETTINGS)
def command(settings: Settings, port: int, data_dir: Path | None) -> None:
    """Run an embedded Kafka broker on this machine until Ctrl-C or SIGTERM.

    The topics of kafka/topics.yml are created. Other verbs reach it with the printed KAFKA_BOOTSTRAP_SERVERS.
    """
    from fraud_filter.java.jars import resolve_jars
    from fraud_filter.kafka.topics import create_topics
    from lab.harness.broker import Broker
    from lab.harness.java import require_java
    from lab.harness.processes import stop_signals
    from lab.harness.supplies import KAFKA_LOCK
    from lab.harness.workspace import Workspace

    try:
        with stop_signals(), Workspace() as workspace:
            java_home, jars = require_java(), resolve_jars(KAFKA_LOCK)
            with Broker(workspace, java_home=java_home, jars=jars, port=port, data_dir=data_dir) as broker:
                create_topics(settings.model_copy(update={"kafka_bootstrap_servers": broker.address}))
                topics = ", ".join(getattr(settings, name) for name in ("input_topic", *output_topics(settings)))
                click.echo(f"KAFKA_BOOTSTRAP_SERVERS={broker.address}")
                click.echo(f"topics {topics}; Ctrl-C stops it", err=True)
                broker.child.wait()
                broker.child.raise_if_dead()
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
