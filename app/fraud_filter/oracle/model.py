"""Computes a model's score without Spark, from what its stages have saved: parameters, labels, trees, coefficients."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, TypeAlias

import pyarrow.parquet

from fraud_filter.errors import UsageError
from fraud_filter.model.saved import ASSEMBLER, BOOSTED, ENCODER, FOREST, INDEXER, LOGISTIC, TREE, SavedModel, Stage
from fraud_filter.schema import SCORE_DIGITS

#: What a stage makes of the values of its inputs: those of its outputs, in their order; a classifier the probability.
Make = Callable[..., Any]
#: A node of a tree, as Spark writes it.
_Node: TypeAlias = Mapping[str, Any]
_LAST_DIGIT = Decimal(1).scaleb(-SCORE_DIGITS)


class Score:
    """The probability of fraud by one model.

    Raises:
        UsageError: the model's files are not as Spark 4.3 writes them.
    """

    def __init__(self, saved: SavedModel, names: Sequence[str]) -> None:
        """`names` are those of the fields and features, in the order in which payments come."""
        self._names = tuple(names)
        try:
            *preparing, last = saved.stages
            self._preparing = [(stage.inputs, stage.outputs, _STAGES[stage.kind](stage)) for stage in preparing]
            self._vector, self._classify = last.inputs, _STAGES[last.kind](last)
        except (LookupError, ValueError, TypeError) as error:
            raise UsageError(f"model {saved.location}: the audit can't read it: {error!r}") from None

    def of(self, fields: Sequence[Any]) -> float | None:
        """The score of a payment, from its fields and features; None where the model has none."""
        columns: dict[str, Any] = dict(zip(self._names, fields, strict=True))
        for inputs, outputs, make in self._preparing:
            columns.update(zip(outputs, make(*(columns[name] for name in inputs)), strict=True))
        probability = self._classify(*(columns[name] for name in self._vector))
        if math.isnan(probability):
            return None
        return float(Decimal(repr(probability)).quantize(_LAST_DIGIT, ROUND_HALF_UP))


def _rows(stage: Stage, folder: str) -> list[dict[str, Any]]:
    """What it has learnt, a Parquet file or several."""
    parts = [data for name, data in sorted(stage.files.items()) if name.startswith(f"{folder}/") and data]
    if not parts:
        raise ValueError(f"{stage.uid} has no {folder}")
    return [row for data in parts for row in pyarrow.parquet.read_table(io.BytesIO(data)).to_pylist()]


def _indexer(stage: Stage) -> Make:
    """A text's place among the known ones; the place after the last for others, and for none."""
    (row,) = _rows(stage, "data")
    places = [{label: float(at) for at, label in enumerate(labels)} for labels in row["labelsArray"]]
    return lambda *texts: [known.get(text, float(len(known))) for text, known in zip(texts, places, strict=True)]


def _encoder(stage: Stage) -> Make:
    """A place as a list of zeros with a one at it."""
    (row,) = _rows(stage, "data")
    keeps = stage.params["handleInvalid"] == "keep"
    sizes = [size + (1 if keeps else 0) - (1 if stage.params["dropLast"] else 0) for size in row["categorySizes"]]
    return lambda *places: [
        [1.0 if at == place else 0.0 for at in range(size)] for place, size in zip(places, sizes, strict=True)
    ]


def _assembler(_: Stage) -> Make:
    """All in one list."""

    def make(*values: Any) -> list[Any]:
        vector: list[float] = []
        for value in values:
            vector += value if isinstance(value, list) else [math.nan if value is None else float(value)]
        return [vector]

    return make


def _trees(stage: Stage) -> list[dict[int, _Node]]:
    """By number of the tree its nodes by their number, of which the first is 0."""
    found: dict[int, dict[int, _Node]] = {}
    for row in _rows(stage, "data"):
        node = row.get("nodeData") or row
        found.setdefault(row.get("treeID", 0), {})[node["id"]] = node
    return [found[number] for number in sorted(found)]


def _leaf(tree: Mapping[int, _Node], vector: Sequence[float]) -> _Node:
    """Values up to a threshold go left, or those of some categories."""
    node = tree[0]
    while node["leftChild"] >= 0:
        split, value = node["split"], vector[node["split"]["featureIndex"]]
        known = split["leftCategoriesOrThreshold"]
        goes_left = value <= known[0] if split["numCategories"] < 0 else value in known
        node = tree[node["leftChild" if goes_left else "rightChild"]]
    return node


def _boosted(stage: Stage) -> Make:
    trees = _trees(stage)
    # Without names: the tree's number, its metadata, its weight.
    weights = [row[-1] for row in sorted(tuple(row.values()) for row in _rows(stage, "treesMetadata"))]

    def make(vector: Sequence[float]) -> float:
        margin = sum(weight * _leaf(tree, vector)["prediction"] for tree, weight in zip(trees, weights, strict=True))
        return _logistic(2 * margin)

    return make


def _forest(stage: Stage) -> Make:
    trees = _trees(stage)

    def make(vector: Sequence[float]) -> float:
        votes = [0.0, 0.0]
        for tree in trees:
            counts = _leaf(tree, vector)["impurityStats"]
            votes = [vote + count / sum(counts) for vote, count in zip(votes, counts, strict=True)]
        return votes[1] / sum(votes)

    return make


def _linear(stage: Stage) -> Make:
    (row,) = _rows(stage, "data")
    matrix = row["coefficientMatrix"]
    if row["isMultinomial"] or row["numClasses"] != 2 or not (matrix["type"] == 1 or matrix["isTransposed"]):
        raise ValueError("its logistic regression is not of one row")
    intercept = _dense(row["interceptVector"], 1)[0]
    weights = _dense({"indices": matrix["rowIndices"], **matrix}, matrix["numCols"])
    return lambda vector: _logistic(
        sum(weight * value for weight, value in zip(weights, vector, strict=True)) + intercept
    )


def _dense(given: Mapping[str, Any], size: int) -> list[float]:
    """The numbers of a vector, or of a matrix of one row, which Spark writes with or without the zeros."""
    if given["type"] == 1:
        return list(given["values"])
    values = [0.0] * size
    for at, value in zip(given["indices"], given["values"], strict=True):
        values[at] = value
    return values


def _logistic(margin: float) -> float:
    """1 / (1 + e^-margin), which no margin overflows."""
    try:
        return 1 / (1 + math.exp(-margin))
    except OverflowError:
        return 0.0


_STAGES: dict[str, Callable[[Stage], Make]] = {
    INDEXER: _indexer,
    ENCODER: _encoder,
    ASSEMBLER: _assembler,
    BOOSTED: _boosted,
    FOREST: _forest,
    TREE: _forest,
    LOGISTIC: _linear,
}
