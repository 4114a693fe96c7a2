"""Scores without Spark are Spark's own, for each kind of classifier; models that can't run here are refused by name."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.ml import Pipeline
from pyspark.ml.classification import (
    DecisionTreeClassifier,
    GBTClassifier,
    LogisticRegression,
    RandomForestClassifier,
)
from pyspark.ml.feature import Normalizer, OneHotEncoder, StringIndexer, VectorAssembler

from exhaustive import exhaustive
from fraud_filter.config import load
from fraud_filter.errors import UsageError
from fraud_filter.model.saved import read_model
from fraud_filter.model.scoring import add_score
from fraud_filter.oracle.model import Score
from fraud_filter.schema import SCORE
from fraud_filter.train import made_up
from models import SCHEMA, read, settings_with, with_model

RULES = "rules:\n  - {name: large, when: amount >= 5000}"
OWN: dict[str, Any] = {"labelCol": "_label", "featuresCol": "_v"}
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "boosted trees": lambda: GBTClassifier(maxIter=4, maxDepth=3, seed=1, **OWN),
    "forest": lambda: RandomForestClassifier(numTrees=4, maxDepth=5, seed=1, **OWN),
    "tree": lambda: DecisionTreeClassifier(maxDepth=6, **OWN),
    "logistic regression": lambda: LogisticRegression(maxIter=20, **OWN),
}


@pytest.fixture(scope="module")
def history(spark: Any) -> Any:
    """Payments of which some lack a field, or have a value that no one has learnt."""
    rows = made_up(spark, load(), SCHEMA, payments=3000, seed=5)
    rare = "CASE WHEN _offset % 7 = 0 THEN NULL WHEN _offset % 11 = 0 THEN 'new' ELSE merchant_category END"
    return (
        rows.selectExpr("*", f"{rare} AS changed")
        .drop("merchant_category")
        .withColumnRenamed("changed", "merchant_category")
        .persist()
    )


def _save(history: Any, stages: list[Any], folder: Path) -> Path:
    learnt = history.where("_label IS NOT NULL AND merchant_category <> 'new'")
    Pipeline(stages=stages).fit(learnt).save(str(folder / "model"))
    return with_model(folder, RULES)


def _stages(classifier: Any) -> list[Any]:
    names = ["merchant_category", "country"]
    places, ones = ([f"_{kind}{at}" for at in range(2)] for kind in ("i", "h"))
    return [
        StringIndexer(inputCols=names, outputCols=places, handleInvalid="keep"),
        OneHotEncoder(inputCols=places, outputCols=ones),
        VectorAssembler(inputCols=["amount", *ones, *places[:1]], outputCol="_v", handleInvalid="keep"),
        classifier,
    ]


@pytest.mark.parametrize("kind", list(CLASSIFIERS))
def test_scores_are_equal_payment_by_payment(kind: str, history: Any, tmp_path: Path) -> None:
    file = _save(history, _stages(CLASSIFIERS[kind]()), tmp_path)
    _, saved = read_model(read(file), SCHEMA, settings_with(file))
    assert saved
    names = [field.name for field in SCHEMA.fields]
    score = Score(saved, names)
    scored = add_score(history.select(*names), saved).collect()
    assert [score.of([row[name] for name in names]) for row in scored] == [row[SCORE] for row in scored]
    assert len({row[SCORE] for row in scored}) > 3
    assert all(0 <= row[SCORE] <= 1 for row in scored)


def _refused(file: Path) -> str:
    with pytest.raises(UsageError) as refusal:
        read_model(read(file), SCHEMA, settings_with(file))
    return str(refusal.value)


def test_what_can_not_run_is_refused_by_name(history: Any, tmp_path: Path) -> None:
    throwing = [
        StringIndexer(inputCol="country", outputCol="_i"),
        VectorAssembler(inputCols=["amount", "_i", "_offset"], outputCol="_a", handleInvalid="keep"),
        Normalizer(inputCol="_a", outputCol="_v"),
    ]
    told = _refused(_save(history, throwing, tmp_path))
    assert "its input '_offset' is neither a field nor a feature" in told
    assert "(Normalizer) is none that every mode runs" in told
    assert "(StringIndexerModel) has handleInvalid 'error', which ends the query; set it to \"keep\"" in told
    assert "it gives no probability" in told


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    file = with_model(tmp_path, RULES)
    assert "there are no files" in _refused(file)
    (tmp_path / "model").mkdir()
    (tmp_path / "model/notes.txt").write_text("none")
    assert "it is no saved PipelineModel" in _refused(file)


@pytest.mark.parametrize("left_over", exhaustive(["another model", "half of it", "nothing"], but=["another model"]))
def test_a_model_that_was_overwritten_is_not_loaded_under_the_old_version(
    history: Any, tmp_path: Path, left_over: str
) -> None:
    """Each start of a query loads it, long after its version was read."""
    (tmp_path / "other").mkdir()
    file = _save(history, _stages(CLASSIFIERS["tree"]()), tmp_path)
    rules, saved = read_model(read(file), SCHEMA, settings_with(file))
    assert saved is not None
    assert saved.version == rules.model_version
    add_score(history, saved)
    _save(history, _stages(DecisionTreeClassifier(maxDepth=2, **OWN)), tmp_path / "other")
    shutil.rmtree(tmp_path / "model")
    if left_over != "nothing":
        shutil.copytree(tmp_path / "other/model", tmp_path / "model")
    if left_over == "half of it":
        shutil.rmtree(tmp_path / "model/stages")
    with pytest.raises(UsageError, match=r"no longer the model that this filter began with .*: put that back"):
        add_score(history, saved)
