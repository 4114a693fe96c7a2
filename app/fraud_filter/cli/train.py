"""`fraud-filter train`: a model from labelled payments, for `model:` in the rules file."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import Settings
from fraud_filter.errors import EXIT_OK, UsageError

#: Of a file, the column with the truth.
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
    from fraud_filter.schema import HEADER_LABEL, load_schema
    from fraud_filter.spark import session
    from fraud_filter.train import fit, from_file, from_topic, made_up

    if out.exists():
        raise UsageError(f"argument --out: {str(out)!r} is there already; name a new directory")
    schema = load_schema(settings.payment_schema)
    rules = load_rules(settings.rules, schema)
    spark = session.start(settings, MODES["micro-batch"])
    try:
        generated = partial(made_up, spark, settings, schema, payments=payments, seed=seed)
        topic = partial(from_topic, spark, settings, label or HEADER_LABEL)
        file = partial(from_file, spark, history, schema, label=label or _COLUMN, time=time)
        rows = {"generated": generated, "topic": topic}.get(history, file)()
        model, trained = fit(rows, rules, schema, settings, trees=trees, seed=seed)
        model.save(str(out))
    finally:
        spark.stop()
    click.echo(trained.text())
    click.echo(f"written: {out}")
    return EXIT_OK
