"""`fraud-filter faults`: faults put into a Compose stack of its own under load, each audited."""

from __future__ import annotations

from pathlib import Path

import click

from fraud_filter.cli.files import docs_option, results_option
from fraud_filter.cli.options import rate_option
from fraud_filter.errors import EXIT_FAILED, EXIT_OK, UsageError
from lab.cli.console import open_console

#: Batches of real-time mode that end now and then: each restart reads again what came in since the last end. Rules that
#: every mode runs: the stack goes from one to the next, and the audits judge by one set.
_CHANGES = {"FRAUD_REAL_TIME_DURATION": "1 minute", "FRAUD_RULES": "app/rules.yml"}
_STANDBY = {"STANDBY": "1", "FRAUD_HANG_TIMEOUT_S": "5"}


@click.command()
@click.option("--only", default="", metavar="NAME,...", help="faults to put in  [all]")
@click.option("--modes", default="", metavar="MODE,...", help="execution modes, in this order  [all]")
@click.option(
    "--standby",
    type=click.Choice(["with", "without", "both"]),
    default="both",
    show_default=True,
    help="whether a standby waits; the faults that are put in with one are marked in --list",
)
@rate_option(300.0)
@click.option(
    "--seconds", type=click.FloatRange(min=0), default=10.0, show_default=True, help="under load before each fault"
)
@results_option("faults.json")
@click.option("--add", is_flag=True, help="keep what the file holds about other faults and modes")
@docs_option("docs/operations.md", "faults")
@click.option("--list", "listed", is_flag=True, help="name the faults, and end")
def command(
    only: str,
    modes: str,
    standby: str,
    rate: float,
    seconds: float,
    output: Path,
    add: bool,
    docs: Path | None,
    listed: bool,
) -> int:
    """Inject faults into a running stack while payments keep coming, and audit after each.

    Brings up a Compose stack of its own beside a running one, without and with a standby; nothing of it is left. Exit
    code 1: something was lost or unexpected, or decisions did not come back in time. Duplicates are counted, and are no
    fault.
    """
    from fraud_filter.text.outputs import read_items
    from fraud_filter.text.tables import write_between
    from lab.bench.names import parse_modes
    from lab.faults.catalogue import FAULTS, choose
    from lab.faults.result import FIELDS, Outcome, markdown_table, result_table, write_outcomes
    from lab.faults.run import Run
    from lab.harness.compose_stack import compose_stack

    if listed:
        for fault in FAULTS:
            click.echo(f"{fault.name:<18} {fault.what}{' (also with a standby)' if fault.standby else ''}")
        return EXIT_OK
    faults, wanted = choose(only), parse_modes(modes)
    if add:
        read_items(output, FIELDS)  # before the work rather than after it
    results: list[Outcome] = []
    for beside in {"with": (True,), "without": (False,), "both": (False, True)}[standby]:
        chosen = [fault for fault in faults if fault.standby or not beside]
        if not chosen:
            continue
        with compose_stack(wanted[0], rate, click.echo, **_CHANGES, **(_STANDBY if beside else {})) as stage:
            for outcome in Run(stage, seconds).each(chosen, wanted):
                results.append(outcome)
                items = write_outcomes(output, results, add=add)
    if not results:
        raise UsageError(
            "argument --standby: none of these faults is put in with a standby: --list names those that are"
        )
    open_console().print(result_table(results))
    if docs:
        write_between(docs, "faults", markdown_table(items, [fault.name for fault in FAULTS]))
    click.echo(f"written: {output.resolve()}")
    return EXIT_OK if all(result.ok for result in results) else EXIT_FAILED
