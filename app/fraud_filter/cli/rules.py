"""`fraud-filter rules check` and `fraud-filter rules test`: try the rules without Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.config import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from fraud_filter.rules import RuleSet
    from fraud_filter.schema import PaymentSchema


@click.group()
def command() -> None:
    """Check the rules, or try them on a file of payments."""


@command.command()
@settings_options("rules", "payment_schema")
def check(settings: Settings) -> None:
    """Check every rule against the payment schema, as `run` does before it starts."""
    with _checked(settings) as (_, rules, _schema):
        lists = sum(len(rule.ids) for rule in rules.rules)
        click.echo(f"{settings.rules}: {len(rules.rules)} rules are right ({lists} blocked ids)")


@command.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, readable=True))
@click.option("--json", "as_json", is_flag=True, help="print one JSON object a payment instead of a table")
@settings_options("rules", "payment_schema")
def test(settings: Settings, file: str, as_json: bool) -> None:
    """Say which rules match which payments of FILE, one JSON payment a line."""
    from fraud_filter import rule_trial

    with _checked(settings) as (spark, rules, schema):
        verdicts = rule_trial.try_rules(spark, file, schema, rules)
        if as_json:
            for verdict in verdicts:
                click.echo(json.dumps(verdict.as_dict()))
        else:
            click.echo(rule_trial.as_table(verdicts))


@contextmanager
def _checked(settings: Settings) -> Iterator[tuple[SparkSession, RuleSet, PaymentSchema]]:
    """A small local session and the rules, checked."""
    from fraud_filter import rule_check, session
    from fraud_filter.rules import load_rules
    from fraud_filter.schema import load_schema

    schema = load_schema(settings.payment_schema)
    rules = load_rules(settings.rules, schema)
    overrides: dict[str, Any] = {"spark_master": "local[1]"}
    spark = session.start(settings.model_copy(update=overrides))
    try:
        rule_check.check_rules(spark, rules, schema, settings.max_record_bytes)
        yield spark, rules, schema
    finally:
        spark.stop()
