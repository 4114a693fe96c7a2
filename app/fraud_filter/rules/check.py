"""Asks Spark's own analyzer whether it understands each predicate as the language does, before a query runs.

What a rule may hold is known without Spark (`language`). This is the proof on the Spark that is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fraud_filter.rules.language import read_predicate
from fraud_filter.rules.ruleset import RuleSet
from fraud_filter.schema import PaymentSchema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_rules(spark: SparkSession, rules: RuleSet, schema: PaymentSchema) -> None:
    """Has Spark analyze every predicate over the payment schema.

    Raises:
        UsageError: Spark refuses a rule; names it.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    columns = rules.columns(schema)
    payments = spark.createDataFrame([], columns.ddl)
    for rule in rules.rules:
        if rule.when is None:
            continue
        try:
            (field,) = payments.select(F.expr(read_predicate(rule.when, columns).spark)).schema.fields
        except PySparkException as error:
            raise rules.refuse(rule, f"Spark refuses {rule.when!r}: {str(error).splitlines()[0]}") from None
        if field.dataType.simpleString() not in ("boolean", "void"):
            raise rules.refuse(rule, f"Spark takes {rule.when!r} for a {field.dataType.simpleString()}")
