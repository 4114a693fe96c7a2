"""`fraud-filter faults`: faults put into a Compose stack of its own under load, each audited."""

from __future__ import annotations

from pathlib import Path

import click

from fraud_filter.cli.files import docs_option, results_option
from fraud_filter.cli.options import rate_option
from fraud_filter.errors import EXIT_FAILED, EXIT_OK
from lab.cli.console import open_console


@click.command()
@click.option("--only", default="", metavar="NAME,...", help="faults to put in  [all]")
@click.option("--modes", default="", metavar="MODE,...", help="execution modes, in this order  [all]")
@rate_option(300.0)
@click.option(
    "--seconds", type=click.FloatRange(min=0), default=10.0, show_default=True, help="under load before each fault"
)
@results_option("faults.json")
@click.option("--add", is_flag=True, help="keep what the file holds about other faults and modes")
@docs_option("docs/operations.md", "faults")
@click.option("--list", "listed", is_flag=True, help="name the faults, and end")
def command(
    only: str, modes: str, rate: float, seconds: float, output: Path, add: bool, docs: Path | None, listed: bool
) -> int:
    """Put faults into a running stack while payments keep coming, and audit after each.

    Brings up a Compose stack of its own beside a running one; nothing of it is left. Exit code 1: something was lost
    or unexpected, or decisions did not come back in time. Duplicates are counted, and are no fault.
    """
    from fraud_filter.text.outputs import read_items
    from fraud_filter.text.tables import write_between
    from lab.bench.names import parse_modes
    from lab.faults.catalogue import FAULTS, choose
    from lab.faults.result import FIELDS, Outcome, markdown_table, result_table, write_outcomes
    from lab.faults.run import Run
    from lab.faults.stage import open_stage

    if listed:
        for fault in FAULTS:
            click.echo(f"{fault.name:<18} {fault.what}")
        return EXIT_OK
    faults, wanted = choose(only), parse_modes(modes)
    if add:
        read_items(output, FIELDS)  # before the work rather than after it
    results: list[Outcome] = []
    # Batches of real-time mode that end now and then: each restart reads again what came in since the last end.
    with open_stage(wanted[0], rate, click.echo, FRAUD_REAL_TIME_DURATION="1 minute") as stage:
        for outcome in Run(stage, seconds).each(faults, wanted):
            results.append(outcome)
            items = write_outcomes(output, results, add=add)
    open_console().print(result_table(results))
    if docs:
        write_between(docs, "faults", markdown_table(items, [fault.name for fault in FAULTS]))
    click.echo(f"written: {output.resolve()}")
    return EXIT_OK if all(result.ok for result in results) else EXIT_FAILED
