"""`fraud-filter train`: a model from labelled payments, for `model:` in the rules file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import Settings
from fraud_filter.errors import EXIT_OK, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from fraud_filter.schema import PaymentSchema

_TOPIC, _GENERATED = "topic", "generated"
_COLUMN = "is_fraud"


@click.command()
@click.argument("history")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="where the model goes")
@click.option("--label", metavar="NAME", help="column (of a topic: header) with the truth  [is_fraud; topic: label]")
@click.option("--time", metavar="NAME", help="column with the time of a payment  [the schema's first TIMESTAMP]")
@click.option("--trees", type=click.IntRange(1, 500), default=50, show_default=True, help="boosted trees")
@click.option(
    "--payments", type=click.IntRange(1000), default=20_000, show_default=True, help="generated: how many are made"
)
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="same history, same seed, same trees"
)
@settings_options(
    *("rules", "payment_schema", "velocity_payments", "spark_master", "spark_conf"),
    *("kafka_bootstrap_servers", "input_topic", "kafka_timeout_s"),
)
def command(
    settings: Settings,
    history: str,
    out: Path,
    label: str | None,
    time: str | None,
    trees: int,
    payments: int,
    seed: int,
) -> int:
    """Learn from HISTORY which payments are fraud, and save the model to DIR.

    HISTORY is a Parquet, CSV or JSON lines file with the fields of a payment and a column that tells fraud; or `topic`,
    the payments of the input topic with their header `label`; or `generated`, payments made up on the spot, for a model
    to try. The model learns from the fields and from the features of the rules file, computed as the filter does. It is
    judged on the last fifth in time.
    """
    from fraud_filter.modes import MODES
    from fraud_filter.rules.ruleset import load_rules
    from fraud_filter.schema import load_schema
    from fraud_filter.spark import session
    from fraud_filter.train import fit

    if out.exists():
        raise UsageError(f"argument --out: {str(out)!r} is there already; name a new directory")
    schema = load_schema(settings.payment_schema)
    rules = load_rules(settings.rules, schema)
    spark = session.start(settings, MODES["micro-batch"])
    try:
        rows = _history(spark, settings, schema, history, label, time, payments, seed)
        model, trained = fit(rows, rules, schema, settings, trees=trees, seed=seed)
        model.save(str(out))
    finally:
        spark.stop()
    click.echo(trained.text())
    click.echo(f"written: {out}")
    return EXIT_OK


def _history(
    spark: SparkSession,
    settings: Settings,
    schema: PaymentSchema,
    history: str,
    label: str | None,
    time: str | None,
    payments: int,
    seed: int,
) -> DataFrame:
    from fraud_filter import train as histories
    from fraud_filter.schema import HEADER_LABEL

    if history == _GENERATED:
        return histories.made_up(spark, settings, schema, payments=payments, seed=seed)
    if history == _TOPIC:
        return histories.from_topic(spark, settings, label or HEADER_LABEL)
    return histories.from_file(spark, history, schema, label=label or _COLUMN, time=time)
