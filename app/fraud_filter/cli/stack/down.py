"""`fraud-filter down`: stops the Compose stack."""

from __future__ import annotations

from pathlib import Path

import click

from fraud_filter.cli.stack.options import env_file_option


@click.command()
@env_file_option
@click.option("--volumes", is_flag=True, help="also remove its data: topics, checkpoint, metrics")
def command(env: Path, volumes: bool) -> None:
    """Stop the stack and remove its containers; what is on its volumes stays, unless --volumes is given."""
    from fraud_filter.compose.stack import GRAFANA, STANDBY, Stack
    from fraud_filter.errors import FraudFilterError

    stack = Stack.open(env.resolve())
    stack.profiles = [GRAFANA, STANDBY]  # also what an earlier run had started
    stopped = stack.compose("down", "--remove-orphans", *(("--volumes",) if volumes else ()))
    if stopped.returncode:
        raise FraudFilterError("the stack was not stopped:\n" + stopped.stdout.strip())
    click.echo(f"{stack.name} is stopped, its data {'removed' if volumes else 'kept'}")
