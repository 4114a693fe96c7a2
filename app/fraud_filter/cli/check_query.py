"""`fraud-filter check-query`: in which modes a function of the user's runs."""

from __future__ import annotations

import click

from fraud_filter.config import load
from fraud_filter.errors import EXIT_OK, EXIT_USAGE
from fraud_filter.modes import MODES


@click.command()
@click.argument("query", metavar="FILE:FUNCTION")
def command(query: str) -> int:
    """Say in which modes the Python function of FILE runs, and why not in the others.

    It is planned and not started; no Kafka is needed. The exit code is 2 where no mode runs it.
    """
    from fraud_filter.query import sources
    from fraud_filter.query.user_query import load_user_query
    from fraud_filter.query.verdicts import find_refusal
    from fraud_filter.spark import session

    settings = load({"query": query, "spark_master": "local[1]"})
    loaded = load_user_query(settings)
    spark = session.start(settings, MODES["micro-batch"])
    try:
        records = sources.read(spark, MODES["micro-batch"], loaded.schema, settings)
        rows = loaded.rows(records, settings)
        refusals = {name: find_refusal(rows, mode) for name, mode in MODES.items()}
        unknown = loaded.why_without_places(rows, records)
    finally:
        spark.stop()
    for name, refusal in refusals.items():
        click.echo(f"{name:<15} {f'no: {refusal}' if refusal else 'yes'}")
    click.echo(f"latency, and each row once: {f'can not be told, as {unknown}' if unknown else 'yes'}")
    return EXIT_OK if not all(refusals.values()) else EXIT_USAGE
