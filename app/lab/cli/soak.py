"""`fraud-filter soak`: a Compose stack of its own under load for a long time, with random faults."""

from __future__ import annotations

import secrets
from pathlib import Path

import click

from fraud_filter.cli.files import results_option
from fraud_filter.cli.options import rate_option
from fraud_filter.errors import EXIT_FAILED, EXIT_OK
from lab.cli.console import open_console


@click.command()
@click.option("--minutes", type=click.FloatRange(min=1), default=60.0, show_default=True, help="how long")
@click.option("--seed", type=click.IntRange(min=0), help="same seed, same faults at the same times  [random]")
@click.option(
    "--modes",
    default="continuous",
    show_default=True,
    metavar="MODE,...",
    help="execution modes, each for an equal share of the time, by a switch on the same checkpoint",
)
@rate_option(300.0)
@results_option("soak.json")
def command(minutes: float, seed: int | None, modes: str, rate: float, output: Path) -> int:
    """Let the stack run under load with faults at random times, audit all of it, and look for growth.

    Brings up a Compose stack of its own beside a running one; nothing of it is left. Exit code 1: something was lost
    or unexpected, a fault was not recovered from, or memory, threads or open files of a process grow.
    """
    from lab.bench.names import parse_modes
    from lab.harness.compose_stack import compose_stack
    from lab.soak.run import soak

    wanted = parse_modes(modes)
    drawn = secrets.randbits(32) if seed is None else seed
    click.echo(f"seed {drawn}")
    with compose_stack(wanted[0], rate, click.echo, FRAUD_RULES="app/rules.yml") as stage:
        result = soak(stage, wanted, minutes=minutes, seed=drawn, rate=rate)
    result.write(output)
    console = open_console()
    for table in result.tables():
        console.print(table)
    found = result.audit
    click.echo(
        f"audit of {found.payments:,} payments: {found.lost} lost, {found.duplicated:,} duplicated, "
        f"{found.unexpected} unexpected; seed {drawn}; written: {output.resolve()}"
    )
    return EXIT_OK if result.ok else EXIT_FAILED
