"""Learns from labelled payments which are fraud: payments of the input topic, of a file, or made up.

Whatever they come from, they have the payment's fields, `_partition`, `_offset` and `_timestamp`, by which windows are
told, `_is_rejected`, and `_label`: 1 for fraud, 0 for none, null where that is not known.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from fraud_filter.generator.payments import MadePayments, Shares
from fraud_filter.generator.source import Steady
from fraud_filter.kafka.client import spark_kafka_options
from fraud_filter.model.saved import NUMBERS
from fraud_filter.model.scoring import register_functions
from fraud_filter.query.decide import read_payments
from fraud_filter.query.velocity import add_features_in_batch
from fraud_filter.rules.ruleset import RuleSet
from fraud_filter.schema import HEADER_LABEL, LEGITIMATE, PaymentSchema, input_schema
from fraud_filter.spark.session import first_line
from fraud_filter.text.nearest import did_you_mean

if TYPE_CHECKING:
    from pyspark.ml import PipelineModel
    from pyspark.sql import Column, DataFrame, SparkSession

#: What a label says of a payment that is no fraud, in lower case.
_NO_FRAUD = ("0", "0.0", "false", "no", "none", LEGITIMATE.decode())

_FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}

#: Made-up payments: 100 a second, a twentieth of them fraud; the day is a fixed one, so that a seed tells all.
_RATE, _SHARES, _START_MS = 100.0, Shares(flagged=0, malformed=0, fraud=0.05), 1_772_366_400_000


def from_topic(spark: SparkSession, settings: Settings, label: str = HEADER_LABEL) -> DataFrame:
    """The payments that the input topic retains, with the truth in their header `label`."""
    options = {**spark_kafka_options(settings), "subscribe": settings.input_topic, "includeHeaders": "true"}
    read = spark.read.format("kafka").options(**options).load()
    given = F.filter("headers", lambda header: header["key"] == label)
    names = ("key", "value", "topic", "partition", "offset", "timestamp")
    columns = (F.col(name).alias(f"_{name}") for name in names)
    records = read.select(*columns, F.get(given, F.lit(0))["value"].cast("string").alias("_said"))
    return _labelled(read_payments(records, input_schema(settings)))


def made_up(
    spark: SparkSession, settings: Settings, schema: PaymentSchema, *, payments: int, seed: int = 1
) -> DataFrame:
    """So many payments of the generator, with fraud among them."""
    source = MadePayments.for_settings(settings, Steady(_RATE), seed=seed, shares=_SHARES)
    rows: list[tuple[Any, ...]] = []
    for batch in itertools.takewhile(lambda _: len(rows) < payments, source.batches(_START_MS)):
        for due_s, key, value, label in zip(
            batch.due_s.tolist(), batch.keys, batch.values, batch.labels or (), strict=True
        ):
            rows.append((key, value, len(rows), _START_MS + round(due_s * 1000), (label or b"").decode()))
    frame = spark.createDataFrame(
        rows[:payments], "_key BINARY, _value BINARY, _offset BIGINT, _ms BIGINT, _said STRING"
    )
    records = frame.select(
        "_key",
        "_value",
        "_offset",
        "_said",
        F.lit(0).alias("_partition"),
        F.timestamp_millis("_ms").alias("_timestamp"),
    )
    return _labelled(read_payments(records, schema))


def from_file(spark: SparkSession, file: str, schema: PaymentSchema, *, label: str, time: str | None) -> DataFrame:
    """The rows of a Parquet, CSV (with names in its first line) or JSON lines file, or of a directory of Parquet.

    Args:
        label: name of the column with the truth.
        time: name of the column with the time of a payment; None: the first TIMESTAMP of the schema.

    Raises:
        UsageError: the file can't be read, or lacks a column.
    """
    from pyspark.errors import PySparkException

    kind = _FORMATS.get(Path(file.removesuffix(".gz")).suffix.lower(), "parquet")
    try:
        read = spark.read.format(kind).options(header="true").load(file)
    except PySparkException as error:
        raise UsageError(f"argument HISTORY: {file!r} can't be read as {kind}: {first_line(error)}") from None
    times = (field.name for field in schema.fields if field.type.startswith("TIMESTAMP"))
    time = time or next(times, None)
    if time is None:
        raise UsageError("argument --time: the schema has no TIMESTAMP; name the column with the time of a payment")
    for name in (label, time, *schema.required):
        if name not in read.columns:
            raise UsageError(
                f"argument HISTORY: {file!r} has no column {name!r}{did_you_mean(name, read.columns)}; "
                f"it has {', '.join(read.columns)}"
            )
    fields = (_field(read, field.name, field.type) for field in schema.fields)
    missing = (F.col(f"`{name}`").isNull() for name in schema.required)
    rows = read.select(
        *fields,
        F.col(f"`{label}`").cast("string").alias("_said"),
        F.col(f"`{time}`").cast("timestamp").alias("_timestamp"),
        F.monotonically_increasing_id().alias("_offset"),
        F.lit(0).alias("_partition"),
    )
    return _labelled(rows.select("*", _any(missing).alias("_is_rejected")))


def _field(read: DataFrame, name: str, kind: str) -> Column:
    found = F.col(f"`{name}`") if name in read.columns else F.lit(None)
    return found.cast(kind).alias(name)


def _any(conditions: Any) -> Column:
    return F.coalesce(F.array_max(F.array(F.lit(False), *conditions)), F.lit(False))


def _labelled(rows: DataFrame) -> DataFrame:
    said = F.lower(F.trim("_said"))
    label = F.when(said.isNotNull() & (said != ""), (~said.isin(*_NO_FRAUD)).cast("double"))
    return rows.select("*", label.alias("_label")).drop("_said")


#: The first part in time is learnt from, the rest judged by.
_LEARNT = 0.8

#: A text with more values is an id, and nothing to learn from; Spark's trees take 32 categories (maxBins).
_MOST_CATEGORIES = 30

#: A score above it counts as fraud, in what is printed.
_THRESHOLD = 0.5

#: Deep enough for a few conditions at once; each level more takes as much time as all before it.
_DEPTH = 4

#: So few partitions: each tree takes some jobs, and few rows are done sooner than tasks are started.
_ROWS_A_PARTITION = 200_000

#: More than any number of a payment.
_HUGE = 1e300

#: Columns of the model's own begin so: no payment's do.
_OWN = "_ml_"


@dataclass(frozen=True)
class Trained:
    """What came of it. `precision` and `recall` at a score of 0.5, and `auc`, the area under the ROC curve, are of the
    later part in time; parts of 1, None where there is nothing to divide by.
    """

    inputs: tuple[str, ...]
    learnt: int
    tested: int
    fraud_learnt: int
    fraud_tested: int
    precision: float | None
    recall: float | None
    auc: float

    def text(self) -> str:
        """A few lines for a person."""
        scores = {name: "-" if part is None else f"{part:.3f}" for name, part in vars(self).items() if name in _SHOWN}
        return "\n".join(
            (
                f"learnt from  {self.learnt:,} payments, {self.fraud_learnt:,} of them fraud",
                f"tested on    {self.tested:,} later ones, {self.fraud_tested:,} of them fraud",
                f"inputs       {', '.join(self.inputs)}",
                *(f"{name:<12} {part}" for name, part in scores.items()),
            )
        )


_SHOWN = ("precision", "recall", "auc")


def fit(
    history: DataFrame, rules: RuleSet, schema: PaymentSchema, settings: Settings, *, trees: int = 50, seed: int = 1
) -> tuple[PipelineModel, Trained]:
    """Fits a pipeline to a history (`history`), with the features of the rules.

    Raises:
        UsageError: the history has too few labelled payments, or none of a kind in a part of it.
    """
    history.sparkSession.conf.set("spark.sql.shuffle.partitions", "8")
    rows = history_with_features(history, rules, settings)
    columns = rules.without_model().columns(schema)
    rows = rows.where(F.col("_label").isNotNull() & ~F.col("_is_rejected")).persist()
    try:
        texts, numbers = _inputs(rows, columns, rules)
        early, late = _parts(rows)
        model = _pipeline(texts, numbers, trees, seed).fit(_without_gaps(early, numbers))
        return model, _judge(model, early, late, (*texts, *numbers))
    finally:
        rows.unpersist()


def history_with_features(history: DataFrame, rules: RuleSet, settings: Settings) -> DataFrame:
    """The history with a column for each feature."""
    return add_features_in_batch(history, rules.features, settings) if rules.features else history


def _inputs(rows: DataFrame, columns: PaymentSchema, rules: RuleSet) -> tuple[list[str], list[str]]:
    """Texts with few values, and numbers; a key is neither, for it tells cards apart and not what they do."""
    keys = {feature.per for feature in rules.features}
    free = [field for field in columns.fields if field.name not in keys]
    texts = [field.name for field in free if field.type == "STRING"]
    counts = rows.agg(*(F.count_distinct(F.col(f"`{name}`")) for name in texts)).first() if texts else ()
    few = [name for name, count in zip(texts, counts or (), strict=True) if 1 < count <= _MOST_CATEGORIES]
    numbers = [field.name for field in free if field.type.startswith(NUMBERS)]
    if not few + numbers:
        raise UsageError("argument HISTORY: there is neither a number nor a text of few values to learn from")
    return few, numbers


def _parts(rows: DataFrame) -> tuple[DataFrame, DataFrame]:
    count = rows.count()
    if not count:
        raise UsageError(
            "argument HISTORY: no payment has both a label and a time such as 2026-03-01T12:00:00Z; name what holds "
            "them with --label and --time"
        )
    (at,) = rows.select(F.unix_millis("_timestamp").alias("_ms")).approxQuantile("_ms", [_LEARNT], 0.001)
    is_early = F.unix_millis("_timestamp") <= int(at)
    early = rows.where(is_early).coalesce(1 + count // _ROWS_A_PARTITION)
    return early, rows.where(~is_early)


def _without_gaps(rows: DataFrame, numbers: list[str]) -> DataFrame:
    """The rows with a huge number in place of each that is missing, for Spark's trees learn from no NaN.

    Where a payment lacks it later it is NaN, which a tree sends where it sends a huge number.
    """
    known = {name: F.col(f"`{name}`").cast("DOUBLE") for name in numbers}
    return rows.withColumns(
        {name: F.when(number.isNull() | F.isnan(number), _HUGE).otherwise(number) for name, number in known.items()}
    )


def _pipeline(texts: list[str], numbers: list[str], trees: int, seed: int) -> Any:
    from pyspark.ml import Pipeline
    from pyspark.ml.classification import GBTClassifier
    from pyspark.ml.feature import StringIndexer, VectorAssembler

    indexed = [f"{_OWN}{name}" for name in texts]
    indexer = StringIndexer(inputCols=texts, outputCols=indexed, handleInvalid="keep", stringOrderType="frequencyDesc")
    assembler = VectorAssembler(inputCols=[*indexed, *numbers], outputCol=f"{_OWN}vector", handleInvalid="keep")
    trees_ = GBTClassifier(
        labelCol="_label",
        featuresCol=f"{_OWN}vector",
        predictionCol=f"{_OWN}prediction",
        maxIter=trees,
        maxDepth=_DEPTH,
        seed=seed,
    )
    trees_ = trees_.setRawPredictionCol(f"{_OWN}raw").setProbabilityCol(f"{_OWN}probability")
    return Pipeline(stages=[*([indexer] if texts else []), assembler, trees_])


def _judge(model: PipelineModel, early: DataFrame, late: DataFrame, inputs: tuple[str, ...]) -> Trained:
    from pyspark.ml.evaluation import BinaryClassificationEvaluator
    from pyspark.ml.functions import vector_to_array

    register_functions(early.sparkSession._jvm)
    score = F.get(vector_to_array(F.col(f"{_OWN}probability")), F.lit(1))
    scored = model.transform(late).select("_label", score.alias("_score")).persist()
    is_fraud, is_found = F.col("_label") == 1, F.col("_score") > _THRESHOLD
    count = [F.count_if(condition) for condition in (is_fraud, is_found, is_fraud & is_found)]
    tested, fraud, found, hits = scored.agg(F.count("*"), *count).first() or (0, 0, 0, 0)
    learnt, fraud_learnt = early.agg(F.count("*"), F.count_if(F.col("_label") == 1)).first() or (0, 0)
    evaluator = BinaryClassificationEvaluator(rawPredictionCol="_score", labelCol="_label")
    auc = float(evaluator.evaluate(scored))
    scored.unpersist()
    return Trained(
        inputs=inputs,
        learnt=learnt,
        tested=tested,
        fraud_learnt=fraud_learnt,
        fraud_tested=fraud,
        precision=hits / found if found else None,
        recall=hits / fraud if fraud else None,
        auc=auc,
    )
