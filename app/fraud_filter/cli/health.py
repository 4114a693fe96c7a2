"""`fraud-filter health`: is the running filter healthy? For healthchecks and scripts."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import Settings
from fraud_filter.errors import EXIT_FAILED, EXIT_OK


@click.command()
@click.option("--json", "as_json", is_flag=True, help="print JSON")
@settings_options("metrics_host", "metrics_port")
def command(settings: Settings, as_json: bool) -> int:
    """Say whether the filter on this machine is active and keeps up; exit code 0 when it does, else 1."""
    from fraud_filter.monitor.health import ask

    verdict = ask(settings)
    click.echo(json.dumps(asdict(verdict), indent=2) if as_json else verdict.line)
    return EXIT_OK if verdict.healthy else EXIT_FAILED
