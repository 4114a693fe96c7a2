"""`fraud-filter rules check` and `test`: try the rules without Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from fraud_filter.cli.options import settings_options
from fraud_filter.cli.verbs import Group
from fraud_filter.config import Settings
from fraud_filter.errors import EXIT_OK, EXIT_USAGE
from fraud_filter.text.terminal import printable_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from fraud_filter.rules.ruleset import RuleSet


@click.group(cls=Group)
def command() -> None:
    """Check the rules, or try them on a file of records."""


@command.command()
@settings_options("rules", "payment_schema")
def check(settings: Settings) -> int:
    """Check every rule against the payment schema, as `run` does before it starts.

    All that is wrong is told within two seconds, without Spark.
    """
    from fraud_filter.model.saved import read_model
    from fraud_filter.rules.ruleset import read_rules
    from fraud_filter.schema import load_schema

    schema = load_schema(settings.payment_schema)
    rules, refused = read_rules(settings.rules, schema)
    if refused:
        for line in refused:
            click.echo(printable_lines(f"fraud-filter: {line}"), err=True)
        return EXIT_USAGE
    read_model(rules, schema, settings)
    lists = sum(len(rule.ids) for rule in rules.rules)
    click.echo(f"{settings.rules}: {len(rules.rules)} rules OK ({lists} blocked ids)")
    return EXIT_OK


@command.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, readable=True))
@click.option("--json", "as_json", is_flag=True, help="print one JSON object a record instead of a table")
@settings_options("rules", "payment_schema", "time_unit")
def test(settings: Settings, file: str, as_json: bool) -> None:
    """Say which rules match which records of FILE, one JSON record a line."""
    from fraud_filter.model.saved import read_model
    from fraud_filter.query import rules_test
    from fraud_filter.rules.ruleset import load_rules
    from fraud_filter.schema import input_schema

    schema = replace(input_schema(settings), has_prefix=False)  # a line is JSON alone
    rules = load_rules(settings.rules, schema)
    _, model = read_model(rules, schema, settings)
    rules = replace(rules, model_inputs=model.inputs, model_version=model.version) if model else rules
    with _session(settings) as spark:
        _tell_untried(rules)
        verdicts = rules_test.try_rules(spark, file, schema, rules, model)
        if as_json:
            for verdict in verdicts:
                click.echo(json.dumps(verdict.as_dict()))
        else:
            click.echo(rules_test.as_table(verdicts))


def _tell_untried(rules: RuleSet) -> None:
    untried = ", ".join(rule.name for rule in rules.rules if rules.uses_features(rule))
    if untried:
        click.echo(f"not tried, a file tells no features (try them with `fraud-filter run`): {untried}", err=True)


@contextmanager
def _session(settings: Settings) -> Iterator[SparkSession]:
    """A small local session."""
    from fraud_filter.spark import session

    overrides: dict[str, Any] = {"spark_master": "local[1]"}
    spark = session.start(settings.model_copy(update=overrides))
    try:
        yield spark
    finally:
        spark.stop()
