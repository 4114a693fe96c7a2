"""`fraud-filter topics` and `access`: what the filter needs in Kafka, its topics, its users and their rights."""

from __future__ import annotations

from pathlib import Path

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import OUTPUT_SETTINGS, Settings
from fraud_filter.home import HOME


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
def topics(settings: Settings, partitions: int | None) -> None:
    """Create the topics that are missing, with their settings; check the ones that exist."""
    from fraud_filter.kafka.topics import create_topics, load_topics

    created = create_topics(settings, partitions=partitions)
    for topic in load_topics(settings, partitions):
        click.echo(f"{topic.name}: {'created' if topic.name in created else 'exists'}")


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
@click.option(
    "--only-declared",
    is_flag=True,
    help="also remove every login and every right that is not in the file, User:* and other programs' users too; not "
    "for a cluster that others share",
)
@click.option("--dry-run", is_flag=True, help="print what would be added (+) and removed (-), and change nothing")
@settings_options(
    *("kafka_bootstrap_servers", "kafka_timeout_s", "input_topic", *OUTPUT_SETTINGS),
    *("kafka_security_protocol", "kafka_ssl_ca", "kafka_ssl_certificate", "kafka_ssl_key"),
)
def access(settings: Settings, passwords: Path, access_file: Path, only_declared: bool, dry_run: bool) -> None:
    """Create Kafka's users with their passwords, and give them the rights that the file says, and no others.

    Users that the file does not name keep their logins and rights, and are listed; --only-declared removes them, as the
    secure stack does at each start. Needs an administrator's rights, and never removes the login that it uses itself.
    Prints a line for each login and right that it adds (+) or removes (-). Passwords can't be compared: they are set
    each time. Exit codes: 0 done (or shown, with --dry-run), 1 the brokers refused, 2 bad input.
    """
    from fraud_filter.kafka.access import Cluster, load_users
    from fraud_filter.text.terminal import printable

    users = load_users(settings, access_file)
    cluster = Cluster(settings)
    change = cluster.compare(users, only_declared=only_declared)
    for line in change.lines():
        click.echo(printable(line))
    if change.left:
        names = printable(", ".join(change.left))
        click.echo(f"not in {access_file.name}, and left alone: {names} (--only-declared removes them)")
    if dry_run:
        click.echo("nothing was changed")
        return
    cluster.apply(change, users, passwords)
    for user in users:
        click.echo(f"{user.name}: {len(user.rights())} rights")
