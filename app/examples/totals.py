"""Counts and adds up the payments of each card as they come in: docs/your-query.md."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention


def transform(records: DataFrame) -> DataFrame:
    """The new totals of a card after its payments, as JSON, under the card's id."""
    text = F.col("value").cast("string")
    payments = records.select(
        F.get_json_object(text, "$.card_id").alias("card_id"),
        F.get_json_object(text, "$.amount").cast("DECIMAL(18, 2)").alias("amount"),
    )
    totals = payments.groupBy("card_id").agg(F.count("*").alias("payments"), F.sum("amount").alias("amount"))
    return totals.select(
        F.col("card_id").alias("key"), F.to_json(F.struct("card_id", "payments", "amount")).alias("value")
    )
