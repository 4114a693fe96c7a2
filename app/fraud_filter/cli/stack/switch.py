"""`fraud-filter switch MODE`: another mode on the same checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from fraud_filter.cli.stack.options import env_file_option, timeout_option
from fraud_filter.config import ModeName


@click.command()
@click.argument("mode", type=click.Choice(get_args(ModeName)))
@env_file_option
@timeout_option
def command(mode: str, env: Path, timeout_s: float) -> None:
    """Stop the stack's filter cleanly, start it again in MODE, and wait until it decides payments."""
    from fraud_filter.compose.stack import Stack
    from fraud_filter.compose.switching import switch

    stack = Stack.open(env.resolve())
    old, took = switch(stack, mode, timeout_s)
    click.echo(f"{mode} mode it is already" if old == mode else f"from {old} to {mode} mode in {took:.0f} s")
