"""`fraud-filter up`, `rollout`, `down` and `status`: the Compose stack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import click

from fraud_filter.config import ModeName, default_env_file
from fraud_filter.errors import EXIT_FAILED, EXIT_OK, FraudFilterError

env_file_option = click.option(
    "--env-file",
    "env",
    type=click.Path(dir_okay=False, path_type=Path),
    default=lambda: default_env_file().resolve(),
    metavar="FILE",
    help="the stack's settings; another file with another COMPOSE_PROJECT_NAME is another stack  [.env]",
)
timeout_option = click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=1),
    default=300.0,
    show_default=True,
    help="seconds until every service must be healthy",
)


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
    help="from now on run a warm standby on its own workers, which takes over when the active filter ends  [STANDBY]",
)
def up(env: Path, timeout_s: float, workers: int | None, secure: bool | None, standby: bool | None) -> None:
    """Check, build and start the stack; return when every service is healthy.

    The settings file is made at the first time, with generated secrets. Exit codes: 0 all healthy, 1 a build failed
    or a service did not become healthy (its last log lines are shown), 2 bad input or no Docker Engine.
    """
    from fraud_filter.compose import conf, images, secrets
    from fraud_filter.compose.checks import INSIDE, check_all
    from fraud_filter.compose.rollout import leave_one
    from fraud_filter.compose.stack import Stack, start
    from fraud_filter.compose.status import addresses

    stack = Stack.open(env.resolve(), make=True)
    if secure is not None:
        secrets.switch(stack, secure=secure)
    secrets.prepare(stack)
    stack.set_standby(standby)
    if workers is not None:
        stack.change("SPARK_WORKERS", str(workers))
    services = stack.services()
    settings = check_all(stack)
    conf.prepare(stack)
    for name in INSIDE:
        if stack.values.get(name):
            click.echo(f"{name} is for programs on this machine; the stack's containers have a value of their own")
    images.prepare(stack)
    click.echo(f"starting {stack.name} in {settings.mode} mode" + (", secured" if stack.secure else ""))
    took = start(stack, ["--remove-orphans"], services, timeout_s)
    leave_one(stack)
    click.echo(f"all healthy after {took:.0f} s")
    for name, address in addresses(stack):
        click.echo(f"  {name:<18} {address}")
    verbs = ("status", "rollout --mode MODE", "audit --stack", "down")
    click.echo(f"next: {', '.join(f'fraud-filter {verb}' for verb in verbs)}")


@click.command()
@env_file_option
@timeout_option
@click.option(
    "--mode",
    type=click.Choice(get_args(ModeName)),
    help="move the filter to this mode, on the same checkpoint and with the images that are there",
)
@click.option(
    "--now",
    is_flag=True,
    help="with a standby: the active filter ends at once and not at its next commit; what came since is read again",
)
def rollout(env: Path, timeout_s: float, mode: str | None, now: bool) -> None:
    """Build the images, and replace the stack's filter by what .env, the folder conf and the images say now.

    With a standby (`up --standby`) that one is replaced first and warms up; the active one hands over to it at its next
    commit, in real-time mode within real_time_duration, and is replaced once payments are decided. Until then it takes
    over if the new one fails. Without a standby the filter is stopped and started again.
    Exit codes: 0 done, or nothing to do; 1 a filter did not become ready: the active one runs on; 2 bad input.
    """
    from fraud_filter.compose import conf, images
    from fraud_filter.compose.checks import check_all, check_rules_in_image
    from fraud_filter.compose.rollout import roll_out, switch
    from fraud_filter.compose.stack import Stack

    stack = Stack.open(env.resolve())
    if mode:
        old, took = switch(stack, mode, timeout_s, now=now)
        click.echo(f"{mode} mode runs already" if old == mode else f"from {old} to {mode} mode in {took:.0f} s")
        return
    stack.services()
    check_all(stack)
    conf.prepare(stack)
    images.prepare(stack)
    check_rules_in_image(stack)  # before the standby is replaced: with rules that are refused it could not start
    took = roll_out(stack, timeout_s, now=now)
    click.echo(f"rolled out in {took:.0f} s" if took else "both filters are up to date: nothing to do")


@click.command()
@env_file_option
@click.option("--volumes", is_flag=True, help="also remove its data: topics, checkpoint, metrics")
def down(env: Path, volumes: bool) -> None:
    """Stop the stack and remove its containers; what is on its volumes stays, unless --volumes is given."""
    from fraud_filter.compose.stack import BROKERS, GRAFANA, STANDBY, Stack

    stack = Stack.open(env.resolve())
    stack.profiles = [GRAFANA, STANDBY, BROKERS]  # also what an earlier run had started
    stopped = stack.compose("down", "--remove-orphans", *(("--volumes",) if volumes else ()))
    if stopped.returncode:
        raise FraudFilterError("the stack was not stopped:\n" + stopped.stdout.strip())
    click.echo(f"{stack.name} is stopped, its data {'removed' if volumes else 'kept'}")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="print JSON")
@env_file_option
def status(env: Path, as_json: bool) -> int:
    """Show services, mode, rates, latency of the last minute, lag and addresses; exit code 0 when all is healthy."""
    from fraud_filter.compose.stack import Stack
    from fraud_filter.compose.status import TIMEOUT_S, addresses, as_dict, find_prometheus, read, screen
    from fraud_filter.text.console import PrintableConsole

    stack = Stack.open(env.resolve())
    states = stack.states()
    if not as_json and not any(state.state == "running" for state in states):
        click.echo(f"{stack.name} is not running: `fraud-filter up` starts it")
        return EXIT_FAILED
    readings = read(find_prometheus(stack, TIMEOUT_S))
    if as_json:
        click.echo(json.dumps(as_dict(states, readings, addresses(stack)), indent=2))
    else:
        PrintableConsole().print(screen(states, readings, addresses(stack)))
    return EXIT_OK if states and all(state.ready for state in states) else EXIT_FAILED
