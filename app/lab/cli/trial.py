"""`fraud-filter lab trial`: a filter under load is disturbed, and audited."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import Settings, refused
from fraud_filter.errors import EXIT_FAILED, EXIT_OK, UsageError
from fraud_filter.home import HOME
from lab.cli.console import open_console
from lab.cli.options import check_directory, default_option, docs_option, rate_option, require_place
from lab.trials.plan import SETTINGS, Trial, parse_ways, plan


@click.command()
@click.argument("disturbances", metavar="DISTURBANCE,...", default="kill")
@click.option("--list", "listed", is_flag=True, help="name the disturbances, and end")
@click.option("--stack", is_flag=True, help="on a throwaway Compose stack, else on an embedded Kafka and Spark")
@click.option("--modes", default="", metavar="MODE,...", help="execution modes, in this order  [all]")
@click.option(
    "--ways",
    default="",
    metavar="FROM:TO,...",
    help="changes of mode in place of --modes, on one checkpoint, by stop, kill or switch; all: the twelve",
)
@default_option(
    "--standby",
    type=click.Choice(["with", "without", "both"]),
    default="both",
    help="whether a standby waits; else a filter is started at once. Of a handover, rules and switch it is the next "
    "filter",
)
@default_option("--tries", type=click.IntRange(min=1), default=1, help="trials of each kind")
@click.option(
    "--in-turn",
    is_flag=True,
    help="handover, rules, switch: to and fro between two filters that wait for each other, so that each takes seconds",
)
@default_option(
    "--cards",
    type=click.IntRange(min=0),
    default=0,
    help="state of so many cards before the first trial; the rules are then the bench's velocity.yml, unless --rules "
    "names others",
)
@default_option(
    "--records", type=click.IntRange(min=1), default=2_000_000, help="payments that come in during an outage"
)
@default_option("--minutes", type=click.FloatRange(min=1), default=60.0, help="how long at random, of all modes")
@click.option("--seed", type=click.IntRange(min=0), help="same seed, same disturbances at the same times  [random]")
@rate_option(300.0)
@default_option("--seconds", type=click.FloatRange(min=0), default=5.0, help="under load before each trial")
@click.option(
    "--below",
    default="",
    metavar="URI",
    help="where the checkpoints go, on any Hadoop file system, and stay  [this machine's disk, where they are removed]",
)
@default_option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), default="trials.json", help="where the results go"
)
@click.option("--add", is_flag=True, help="keep what the file holds about other kinds of trials")
@click.option("--table", "only_table", is_flag=True, help="run nothing: show the file's results, as --docs does")
@docs_option("docs/results/trials.md")
@settings_options("query", "rules", "payment_schema", *SETTINGS)
def command(
    settings: Settings,
    rate: float,
    seconds: float,
    below: str,
    output: Path,
    add: bool,
    only_table: bool,
    docs: Path | None,
    listed: bool,
    **arguments: Any,
) -> int:
    """Disturb a filter under load, and audit what it wrote: lost, repeated, and how long nothing was decided.

    The gap lasts from the disturbance to the first decision about a payment that came after it, by the broker's times;
    of a stop, handover, rules and switch, and on the stack, it is the longest time between two decisions. Nothing is
    left running. Exit code 1: something was lost or unexpected, a payment was decided twice (but by a filter that was
    thought dead and went on), or decisions did not come back (in time).

    A query of yours must give a row for each record, and its module have an `expect`.
    """
    from lab.harness.tables import write_between
    from lab.trials.catalogue import DISTURBANCES, RANDOM
    from lab.trials.result import markdown_table, read_outcomes, result_table, write_outcomes
    from lab.trials.run import run_trials

    require_place(docs, "trials")
    if listed:
        for one in DISTURBANCES.values():
            where = ", ".join(stage for stage in ("embedded", "stack") if getattr(one, stage))
            click.echo(f"{one.name:<18} {one.what} ({where}{', also with a standby' if one.beside else ''})")
        click.echo(f"{RANDOM:<18} those of the stack at random, for --minutes (stack)")
        return EXIT_OK
    check_directory(output.parent)
    items = read_outcomes(output) if add or only_table else []  # before the work rather than after it
    is_ok = True
    if settings.query and (add or docs):
        raise UsageError("argument --add, --docs: they are for trials of the fraud filter; leave them out with a query")
    if not only_table:
        settings, trials = _plan(settings, below=below, **arguments)
        found = []
        for outcome in run_trials(settings, trials, rate=rate, seconds=seconds, below=below, say=click.echo):
            found.append(outcome)
            items = write_outcomes(output, found, add=add)  # each: what was measured stays when a later one fails
        is_ok = all(outcome.ok for outcome in found)
    open_console().print(result_table(items))
    if docs:
        write_between(docs, "trials", markdown_table(items))
    click.echo(f"written: {output.resolve()}")
    return EXIT_OK if is_ok else EXIT_FAILED


def _plan(
    settings: Settings,
    *,
    disturbances: str,
    stack: bool,
    modes: str,
    ways: str,
    standby: str,
    tries: int,
    in_turn: bool,
    cards: int,
    records: int,
    minutes: float,
    seed: int | None,
    below: str,
) -> tuple[Settings, list[Trial]]:
    """The settings and the trials that the arguments mean.

    Raises:
        UsageError: an argument is not accepted, or two don't go together.
    """
    from fraud_filter.rules.ruleset import load_rules
    from fraud_filter.schema import load_schema
    from lab.bench.contenders import VELOCITY_RULES
    from lab.bench.names import parse_modes
    from lab.trials.catalogue import RANDOM, choose, on_stage

    names = choose(disturbances, "stack" if stack else "embedded")
    if settings.query:
        _check_query(settings, [*names, *(["--cards"] if cards else [])])
    defaults = {name: field.get_default(call_default_factory=True) for name, field in Settings.model_fields.items()}
    changed = {name for name, default in defaults.items() if getattr(settings, name) != default}
    # The images hold the rules that ship.
    not_shipped = settings.rules.resolve().parent != HOME / "app"
    not_on_stack = {
        "--rules": not_shipped, "--payment-schema": "payment_schema" in changed, "--cards": cards, "--in-turn": in_turn,
        "--below": below, "a --query that names no file": settings.query and ".py:" not in settings.query,
    }  # fmt: skip
    for name, given in not_on_stack.items():
        if stack and given:
            raise UsageError(f"argument --stack: {name} goes with the embedded stage alone: leave one of the two away")
    if ways and modes:
        raise UsageError("argument --ways: names the modes: leave --modes away")
    if cards and "rules" not in changed:
        settings = settings.model_copy(update={"rules": VELOCITY_RULES})
    pairs = parse_ways(ways) if ways else [(mode, mode) for mode in parse_modes(modes)]
    needs_others = "switch" in names or any(pair != ("real-time", "real-time") for pair in pairs)
    if needs_others and load_rules(settings.rules, load_schema(settings.payment_schema)).features:
        raise refused(
            "rules",
            settings.rules,
            "has features, whose state only real-time mode has: no other mode runs them",
            "name rules without features, or try `fraud-filter lab trial kill,handover --modes real-time`",
        )
    is_random = names == [RANDOM]
    seed = secrets.randbits(32) if seed is None and is_random else seed or 0
    given = [settings.rules.name] if "rules" in changed and not settings.query else []
    given += [f"{name}={getattr(settings, name)}" for name in SETTINGS if name in changed]
    common = Trial(
        "", "micro-batch", "micro-batch", stage="stack" if stack else "embedded", cards=cards, in_turn=in_turn,
        seed=seed, records=records if "outage" in names else 0, minutes=minutes if is_random else 0,
        given=", ".join(given),
    )  # fmt: skip
    standbys = {"with": [True], "without": [False], "both": [False] if is_random else [True, False]}[standby]
    trials = [trial for trial in plan(names, pairs, standbys, tries, common) if on_stage(trial)]
    if not trials:
        raise UsageError("argument --standby: none of these is tried with a standby: --list names those that are")
    return settings, trials


def _check_query(settings: Settings, given: list[str]) -> None:
    """Refuses what is about rules, and a query of which nobody can tell what is lost.

    Args:
        given: the disturbances, and options.
    """
    from fraud_filter.query.user_query import load_user_query

    if others := sorted({"rules", "--cards"}.intersection(given)):
        raise refused("query", settings.query, f"does not go with {', '.join(others)}", "leave one of the two away")
    if not load_user_query(settings).expect:
        raise refused("query", settings.query, "has no function expect in its module", "add it: docs/your-query.md")
