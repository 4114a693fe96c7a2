"""`fraud-filter init` and `config`: the files that a user edits, and the settings in force."""

from __future__ import annotations

import json
from pathlib import Path

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import Settings, env_name
from fraud_filter.errors import UsageError
from fraud_filter.home import HOME

#: What is written beside `.env`: its name there, and the file that ships.
FILES = {
    "conf/rules.yml": HOME / "app/rules.yml",
    "conf/blocked-cards.txt": HOME / "app/blocked-cards.txt",
    "conf/payment.ddl": HOME / "app/payment.ddl",
    "conf/topics.yml": HOME / "kafka/topics.yml",
}
_ENV = ".env"
_OWN_LINES = Path(__file__).with_name("project.env")


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
def init(directory: Path) -> None:
    """Write a project of your own into DIRECTORY: rules, payment schema, topics, and a .env with settings.

    `run`, `rules`, `demo`, `up` and the other verbs use them when they are called from there. Nothing that is there is
    overwritten.
    """
    from fraud_filter.compose import env_file

    present = [name for name in (*FILES, _ENV) if (directory / name).exists()]
    if present:
        raise UsageError(f"{directory} has {', '.join(present)} already: name another directory, or move them away")
    env = directory / _ENV
    try:
        directory.mkdir(parents=True, exist_ok=True)
        env_file.make(env)
        for name in env_file.read(_OWN_LINES):
            env_file.remove(env, name)
        env.write_text(_OWN_LINES.read_text(encoding="utf-8") + env.read_text(encoding="utf-8"), encoding="utf-8")
        for name, file in FILES.items():
            (directory / name).write_bytes(file.read_bytes())
    except OSError as error:
        raise UsageError(f"{error.filename or directory} can't be written: {error.strerror}; name another") from None
    for name in (*FILES, _ENV):
        click.echo(directory / name)
    click.echo(
        f"next: cd {directory}, then fraud-filter rules check, fraud-filter demo, or fraud-filter up (with Docker)"
    )


@click.command()
@click.option("--json", "as_json", is_flag=True, help="print JSON")
@settings_options()
def show(settings: Settings, as_json: bool) -> None:
    """Print the effective configuration, secrets masked."""
    values = settings.shown()
    if as_json:
        click.echo(json.dumps(values, indent=2))
        return
    for name, value in values.items():
        click.echo(f"{env_name(name)}={value if isinstance(value, str) else json.dumps(value)}")
