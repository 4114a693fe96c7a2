"""`fraud-filter switch MODE`: another mode on the same checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from fraud_filter.cli.stack.options import env_file_option, now_option, timeout_option
from fraud_filter.config import ModeName


@click.command()
@click.argument("mode", type=click.Choice(get_args(ModeName)))
@env_file_option
@timeout_option
@now_option
def command(mode: str, env: Path, timeout_s: float, now: bool) -> None:
    """Move the stack's filter to MODE, and wait until it decides records.

    With a standby (`up --standby`) that one is started in MODE, warms up, and takes over at the active one's next
    commit, in real-time mode within real_time_duration; then the former one waits in MODE. Without a standby the
    filter is stopped cleanly and started again.
    """
    from fraud_filter.compose.moving.switching import switch
    from fraud_filter.compose.stack import Stack

    stack = Stack.open(env.resolve())
    old, took = switch(stack, mode, timeout_s, now=now)
    click.echo(f"{mode} mode runs already" if old == mode else f"from {old} to {mode} mode in {took:.0f} s")
