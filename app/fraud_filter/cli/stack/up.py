"""`fraud-filter up`: the Compose stack, from whatever is there to all healthy."""

from __future__ import annotations

from pathlib import Path

import click

from fraud_filter.cli.stack.options import env_file_option, timeout_option
from fraud_filter.home import IS_PACKAGE

_TARGETS = ("make status", "make switch MODE=real-time", "make audit", "make logs", "make down")


@click.command()
@env_file_option
@timeout_option
@click.option(
    "--workers", type=click.IntRange(1, 64), metavar="N", help="Spark workers to run, from now on  [SPARK_WORKERS]"
)
@click.option(
    "--secure/--no-secure",
    default=None,
    help="logins, encryption and rights everywhere, from now on; docs/security.md  [COMPOSE_FILE]",
)
@click.option(
    "--standby/--no-standby",
    default=None,
    help="a second filter that waits, warm, on workers of its own, and takes over, from now on  [STANDBY]",
)
def command(env: Path, timeout_s: float, workers: int | None, secure: bool | None, standby: bool | None) -> None:
    """Check, build and start the stack; return when every service is healthy.

    The settings file is made at the first time, with generated secrets. Exit codes: 0 all healthy, 1 a build failed
    or a service did not become healthy (its last log lines are shown), 2 bad input or no Docker Engine.
    """
    from fraud_filter.compose import conf, env_file, images, security
    from fraud_filter.compose.addresses import addresses
    from fraud_filter.compose.checks import INSIDE, check_all
    from fraud_filter.compose.moving import replicas
    from fraud_filter.compose.stack import Stack
    from fraud_filter.compose.waiting import start

    stack = Stack.open(env.resolve(), make=True)
    if secure is not None:
        security.switch(stack, secure=secure)
    security.prepare(stack)
    env_file.require(stack.env, stack.values)
    stack.set_standby(standby)
    if workers is not None:
        stack.change("SPARK_WORKERS", str(workers))
    settings = check_all(stack)
    conf.prepare(stack)
    for name in INSIDE:
        if stack.values.get(name):
            click.echo(f"{name} is for programs on this machine; the stack's containers have a value of their own")
    images.prepare(stack)
    click.echo(f"starting {stack.name} in {settings.mode} mode" + (", secured" if stack.secure else ""))
    took = start(stack, ["--remove-orphans"], stack.services(), timeout_s)
    replicas.leave_one(stack)
    click.echo(f"all healthy after {took:.0f} s")
    for name, address in addresses(stack):
        click.echo(f"  {name:<18} {address}")
    verbs = ("status", "switch real-time", "audit", "down")
    shown = [f"fraud-filter {verb}" for verb in verbs] if IS_PACKAGE else _TARGETS
    click.echo(f"next: {', '.join(shown)}")
