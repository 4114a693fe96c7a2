"""`fraud-filter config`: the configuration in force, and where each value comes from."""

from __future__ import annotations

import json

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import Settings, env_name


@click.command()
@click.option("--json", "as_json", is_flag=True, help="print JSON")
@settings_options()
def command(settings: Settings, as_json: bool) -> None:
    """Print the effective configuration, secrets masked."""
    values = settings.shown()
    if as_json:
        click.echo(json.dumps(values, indent=2))
        return
    for name, value in values.items():
        click.echo(f"{env_name(name)}={value if isinstance(value, str) else json.dumps(value)}")
