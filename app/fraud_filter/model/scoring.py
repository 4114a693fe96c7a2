"""The model's score as a column: the pipeline itself, run by Spark's Java. No Python runs per record.

`pyspark.ml` is left aside: it needs numpy in each process that loads it, and wraps the same Java objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from fraud_filter.model.saved import SavedModel, require_unchanged
from fraud_filter.schema import SCORE, SCORE_DIGITS
from fraud_filter.spark.session import first_line

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def add_score(payments: DataFrame, saved: SavedModel) -> DataFrame:
    """The payments with their score: the probability of fraud, rounded; null where the model has none (NaN).

    Args:
        payments: with the columns that the model takes; it is as with nulls in them.

    Raises:
        UsageError: Spark can't load the model, it does not fit the payments, or it is another one than was read.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame as Frame

    spark = payments.sparkSession
    own = payments.columns
    try:
        pipeline = spark._jvm.org.apache.spark.ml.PipelineModel.load(saved.location)  # type: ignore[union-attr]
        scored = Frame(pipeline.transform(payments._jdf), spark)
    except (Py4JJavaError, PySparkException) as error:
        require_unchanged(saved, spark)  # half of another model is none
        raise saved.refused(f"Spark can't run it: {first_line(error)}") from None
    require_unchanged(saved, spark)  # what Spark has loaded is what decides, under the version of what was read before
    probability = _second(spark._jvm, scored, saved.stages[-1].params["probabilityCol"])
    score = F.when(~F.isnan(probability), F.round(probability, SCORE_DIGITS))
    return scored.select(*(F.col(f"`{name}`") for name in own), score.alias(SCORE))


def register_functions(jvm: Any) -> None:
    """Makes `vector_to_array` known to Spark, which takes seconds: the images don't have each session do it.

    Does nothing where it is known.
    """
    getattr(getattr(jvm.org.apache.spark.sql.ml, "InternalFunctionRegistration$"), "MODULE$").apply()


def _second(jvm: Any, scored: DataFrame, vector: str) -> Column:
    """The second element of a vector."""
    from pyspark.sql.classic.column import Column as Classic

    register_functions(jvm)
    array = jvm.org.apache.spark.ml.functions.vector_to_array(scored[vector]._jc, "float64")
    return F.get(Classic(array), F.lit(1))
