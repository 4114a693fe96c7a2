"""`fraud-filter check-query`: in which modes a function of the user's runs."""

from __future__ import annotations

import click

from fraud_filter.config import load
from fraud_filter.errors import EXIT_OK, EXIT_USAGE


@click.command()
@click.argument("query", metavar="FILE:FUNCTION")
def command(query: str) -> int:
    """Say in which modes the Python function runs, and why the others refuse it.

    Spark plans the query of each mode without Kafka. Exit code 2: no mode runs it.
    """
    from fraud_filter.query.verdicts import find_verdicts

    refusals, unknown = find_verdicts(load({"query": query}))
    for name, refusal in refusals.items():
        click.echo(f"{name:<15} {f'no: {refusal}' if refusal else 'yes'}")
    click.echo(f"latency, and each row once: {f'not known, as {unknown}' if unknown else 'yes'}")
    return EXIT_OK if not all(refusals.values()) else EXIT_USAGE
