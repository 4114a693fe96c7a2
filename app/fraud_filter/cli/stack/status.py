"""`fraud-filter status`: the stack in one screen."""

from __future__ import annotations

import json
from pathlib import Path

import click

from fraud_filter.cli.stack.options import env_file_option
from fraud_filter.errors import EXIT_FAILED, EXIT_OK


@click.command()
@click.option("--json", "as_json", is_flag=True, help="print JSON")
@env_file_option
def command(env: Path, as_json: bool) -> int:
    """Show services, mode, rates, latency of the last minute, lag and addresses; exit code 0 when all is healthy."""
    from fraud_filter.compose.addresses import addresses, find_prometheus
    from fraud_filter.compose.readings import TIMEOUT_S, read
    from fraud_filter.compose.screen import as_dict, screen
    from fraud_filter.compose.stack import Stack
    from fraud_filter.text.console import PrintableConsole

    stack = Stack.open(env.resolve())
    states = stack.states()
    if not as_json and not any(state.state == "running" for state in states):
        click.echo(f"{stack.name} is not running: make up starts it")
        return EXIT_FAILED
    readings = read(find_prometheus(stack.env, TIMEOUT_S))
    if as_json:
        click.echo(json.dumps(as_dict(states, readings, addresses(stack)), indent=2))
    else:
        PrintableConsole().print(screen(states, readings, addresses(stack)))
    return EXIT_OK if states and all(state.ready for state in states) else EXIT_FAILED
