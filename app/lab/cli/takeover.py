"""`fraud-filter takeover`: how long nothing is decided when the filter is killed, with and without a standby."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from fraud_filter.cli.files import docs_option, results_option
from fraud_filter.cli.options import rate_option, settings_options
from fraud_filter.config import Settings
from fraud_filter.errors import EXIT_FAILED, EXIT_OK, UsageError
from lab.cli.console import open_console

if TYPE_CHECKING:
    from lab.takeover.result import What


@click.command()
@click.option("--modes", default="real-time,continuous", show_default=True, metavar="MODE,...", help="modes to kill")
@click.option(
    "--what",
    default="kill",
    show_default=True,
    metavar="KIND,...",
    help="kill (SIGKILL of Python and Java), hang (SIGSTOP of Java), freeze (SIGSTOP of both, SIGCONT after 2 s: two "
    "never work at once); planned: handover (other settings), rules, switch "
    "(to micro-batch mode and back, of that mode to real-time)",
)
@click.option(
    "--standby",
    type=click.Choice(["with", "without", "both"]),
    default="both",
    show_default=True,
    help="whether a standby waits; else a filter is started at once",
)
@click.option(
    "--stack",
    is_flag=True,
    help="on a throwaway Compose stack whose standby has workers of its own: kill (of the container's processes), "
    "handover and switch, with a standby",
)
@click.option("--tries", type=click.IntRange(min=1), default=10, show_default=True, help="interruptions of each kind")
@click.option("--mixed", is_flag=True, help="the kinds that are not planned take turns on one checkpoint")
@click.option(
    "--in-turn",
    is_flag=True,
    help="planned changes go to and fro between two filters that wait for each other, so that each takes seconds",
)
@click.option(
    "--cards",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="state of so many cards before the first interruption; the rules are then the bench's velocity.yml, unless "
    "--rules names others",
)
@rate_option(100.0)
@click.option(
    "--seconds", type=click.FloatRange(min=0), default=5.0, show_default=True, help="under load before each kill"
)
@results_option("takeover.json")
@click.option("--add", is_flag=True, help="keep what the file holds about other kinds")
@docs_option("docs/operations.md", "takeover")
@settings_options(
    "rules", "continuous_interval", "real_time_duration", "standby_warm_up_s", "hang_timeout_s", "spark_conf"
)
def command(
    settings: Settings,
    modes: str,
    what: str,
    standby: str,
    stack: bool,
    tries: int,
    mixed: bool,
    in_turn: bool,
    cards: int,
    rate: float,
    seconds: float,
    output: Path,
    add: bool,
    docs: Path | None,
) -> int:
    """Kill the filter under load, have its Java hang, or change it, again and again, and audit after each.

    The gap lasts from that moment to the first decision about a payment that came after it, by the broker's times; of
    a planned change it is the longest time between two decisions.
    Runs an embedded Kafka and Spark, or with --stack the Compose stack; nothing is left running. Exit code 1:
    something was lost or unexpected, or no decision came. Duplicates are counted, and are no fault.
    """
    from fraud_filter.text.outputs import read_items
    from fraud_filter.text.tables import write_between
    from lab.bench.contenders import VELOCITY_RULES
    from lab.bench.names import parse_modes
    from lab.takeover.compose import run_on_compose
    from lab.takeover.result import FIELDS, markdown_table, result_table, write_takeovers
    from lab.takeover.stage import run_on_stage

    chosen = parse_modes(modes)
    if add:
        read_items(output, FIELDS)  # before the work rather than after it
    kinds = _kinds(what, stack=stack)
    own_rules = settings.rules != Settings.model_fields["rules"].default
    for name, given in {"--rules": own_rules, "--cards": cards, "--mixed": mixed, "--in-turn": in_turn}.items():
        if stack and given:
            raise UsageError(f"argument --stack: {name} goes with the embedded stack alone: leave one of the two away")
    if cards and not own_rules:
        settings = settings.model_copy(update={"rules": VELOCITY_RULES})
    standbys = {"with": [True], "without": [False], "both": [True, False]}[standby]
    if stack:
        results = run_on_compose(settings, kinds, chosen, tries=tries, rate=rate, seconds=seconds, say=click.echo)
    else:
        results = run_on_stage(
            settings, kinds, chosen, standbys, tries=tries, mixed=mixed, in_turn=in_turn, cards=cards, rate=rate,
            seconds=seconds, say=click.echo,
        )  # fmt: skip
    items = write_takeovers(output, results, add=add)
    if docs:
        write_between(docs, "takeover", markdown_table(items))
    open_console().print(result_table(items))
    click.echo(f"written: {output.resolve()}")
    return EXIT_OK if all(result.ok for result in results) else EXIT_FAILED


def _kinds(text: str, *, stack: bool) -> list[What]:
    from lab.bench.names import parse_kinds
    from lab.takeover.compose import KINDS
    from lab.takeover.result import What

    known: tuple[What, ...] = KINDS if stack else get_args(What)
    return parse_kinds(text, known, "--what", "a kind with --stack" if stack else "a kind")
