"""`fraud-filter bench-compare`: two reports of `fraud-filter bench` side by side."""

from __future__ import annotations

from pathlib import Path

import click

from fraud_filter.errors import EXIT_OK
from lab.cli.console import open_console

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("one", type=_FILE)
@click.argument("other", type=_FILE)
def command(one: Path, other: Path) -> int:
    """Show two bench-report.json side by side, ONE and OTHER; what differs by more than 20 % is marked."""
    from lab.bench.results.compare import NOTABLE, compare, comparison_table, load_report

    found = compare(load_report(one), load_report(other))
    console = open_console()
    console.print(comparison_table(found, (str(one), str(other))))
    notable, single = sum(line.is_notable for line in found), sum(line.is_single for line in found)
    rest = f"; {single} are in one report only" if single else ""
    click.echo(f"{notable} of {len(found) - single} values differ by more than {NOTABLE:.0%}{rest}")
    return EXIT_OK
