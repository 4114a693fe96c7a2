"""`fraud-filter access`: the users of Kafka and their rights."""

from __future__ import annotations

from pathlib import Path

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import HOME, Settings


@click.command()
@click.option(
    "--passwords",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("/run/secrets"),
    show_default=True,
    metavar="DIR",
    help="directory with a file for each user, of its name, that holds its password alone",
)
@click.option(
    "--access-file",
    type=click.Path(path_type=Path),
    default=HOME / "kafka/access.yml",
    metavar="FILE",
    help="YAML file with the users and their rights  [kafka/access.yml]",
)
@settings_options(
    *("kafka_bootstrap_servers", "kafka_timeout_s", "input_topic", "flagged_topic", "rejected_topic"),
    *("kafka_security_protocol", "kafka_ssl_ca", "kafka_ssl_certificate", "kafka_ssl_key"),
)
def command(settings: Settings, passwords: Path, access_file: Path) -> None:
    """Make Kafka's users with their passwords, and make their rights what the file says; what it lacks is taken away.

    Needs an administrator's rights. The secure stack does it at each start.
    """
    from fraud_filter.access import grant

    for user in grant(settings, passwords, access_file):
        click.echo(f"{user.name}: {len(user.rights())} rights")
