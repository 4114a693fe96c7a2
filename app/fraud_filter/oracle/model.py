"""Computes a model's score without Spark, from what its stages have saved: parameters, labels, trees, coefficients."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, NamedTuple

import pyarrow.parquet

from fraud_filter.errors import UsageError
from fraud_filter.model.saved import ASSEMBLER, BOOSTED, ENCODER, FOREST, INDEXER, LOGISTIC, TREE, SavedModel, Stage
from fraud_filter.schema import SCORE_DIGITS

#: What a stage has made of one payment: by column a number or a list of them.
Columns = dict[str, Any]
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
            self._stages = [_STAGES[stage.kind](stage) for stage in saved.stages]
        except (LookupError, ValueError, TypeError) as error:
            raise UsageError(f"model {saved.location}: the audit can't read it: {error!r}") from None
        self._probability = saved.stages[-1].params["probabilityCol"]

    def of(self, fields: Sequence[Any]) -> float | None:
        """The score of a payment, from its fields and features; None where the model has none."""
        columns: Columns = dict(zip(self._names, fields, strict=True))
        for stage in self._stages:
            stage(columns)
        probability = columns[self._probability]
        if math.isnan(probability):
            return None
        return float(Decimal(repr(probability)).quantize(_LAST_DIGIT, ROUND_HALF_UP))


def _rows(stage: Stage, folder: str) -> list[dict[str, Any]]:
    """What it has learnt, a Parquet file or several."""
    parts = [data for name, data in sorted(stage.files.items()) if name.startswith(f"{folder}/") and data]
    if not parts:
        raise ValueError(f"{stage.uid} has no {folder}")
    return [row for data in parts for row in pyarrow.parquet.read_table(io.BytesIO(data)).to_pylist()]


def _indexer(stage: Stage) -> Callable[[Columns], None]:
    """A text's place among the known ones; the place after the last for others, and for none."""
    (row,) = _rows(stage, "data")
    places = [{label: float(at) for at, label in enumerate(labels)} for labels in row["labelsArray"]]

    def add(columns: Columns) -> None:
        for source, target, known in zip(stage.inputs, stage.outputs, places, strict=True):
            columns[target] = known.get(columns[source], float(len(known)))

    return add


def _encoder(stage: Stage) -> Callable[[Columns], None]:
    """A place as a list of zeros with a one at it."""
    (row,) = _rows(stage, "data")
    keeps = stage.params["handleInvalid"] == "keep"
    sizes = [size + (1 if keeps else 0) - (1 if stage.params["dropLast"] else 0) for size in row["categorySizes"]]

    def add(columns: Columns) -> None:
        for source, target, size in zip(stage.inputs, stage.outputs, sizes, strict=True):
            columns[target] = [1.0 if at == columns[source] else 0.0 for at in range(size)]

    return add


def _assembler(stage: Stage) -> Callable[[Columns], None]:
    def add(columns: Columns) -> None:
        vector: list[float] = []
        for name in stage.inputs:
            value = columns[name]
            vector += value if isinstance(value, list) else [math.nan if value is None else float(value)]
        columns[stage.outputs[0]] = vector

    return add


class _Node(NamedTuple):
    """`feature` is -1 for a leaf; `left` are the categories that go left, or None: values up to `most` do."""

    feature: int
    most: float
    left: frozenset[float] | None
    children: tuple[int, int]
    prediction: float
    counts: tuple[float, ...]


def _trees(stage: Stage) -> list[Mapping[int, _Node]]:
    """By number of the tree its nodes by their number, of which the first is 0."""
    rows = _rows(stage, "data")
    found: dict[int, dict[int, _Node]] = {}
    for row in rows:
        data = row.get("nodeData") or row
        found.setdefault(row.get("treeID", 0), {})[data["id"]] = _node(data)
    return [found[number] for number in sorted(found)]


def _node(data: Mapping[str, Any]) -> _Node:
    split, is_leaf = data["split"], data["leftChild"] < 0
    is_continuous = split["numCategories"] < 0
    values = split["leftCategoriesOrThreshold"]
    return _Node(
        feature=-1 if is_leaf else split["featureIndex"],
        most=values[0] if is_continuous and not is_leaf else math.nan,
        left=None if is_continuous else frozenset(values),
        children=(data["leftChild"], data["rightChild"]),
        prediction=data["prediction"],
        counts=tuple(data["impurityStats"]),
    )


def _leaf(tree: Mapping[int, _Node], vector: Sequence[float]) -> _Node:
    node = tree[0]
    while node.feature >= 0:
        value = vector[node.feature]
        goes_left = value <= node.most if node.left is None else value in node.left
        node = tree[node.children[0 if goes_left else 1]]
    return node


def _classifier(probability: Callable[[Stage], Callable[[Sequence[float]], float]]) -> Any:
    def make(stage: Stage) -> Callable[[Columns], None]:
        of, target, source = probability(stage), stage.params["probabilityCol"], stage.inputs[0]

        def add(columns: Columns) -> None:
            columns[target] = of(columns[source])

        return add

    return make


def _boosted(stage: Stage) -> Callable[[Sequence[float]], float]:
    trees = _trees(stage)
    # Without names: the tree's number, its metadata, its weight.
    weights = [row[-1] for row in sorted(tuple(row.values()) for row in _rows(stage, "treesMetadata"))]

    def of(vector: Sequence[float]) -> float:
        margin = sum(weight * _leaf(tree, vector).prediction for tree, weight in zip(trees, weights, strict=True))
        return _logistic(2 * margin)

    return of


def _forest(stage: Stage) -> Callable[[Sequence[float]], float]:
    trees = _trees(stage)

    def of(vector: Sequence[float]) -> float:
        votes = [0.0, 0.0]
        for tree in trees:
            counts = _leaf(tree, vector).counts
            votes = [vote + count / sum(counts) for vote, count in zip(votes, counts, strict=True)]
        return votes[1] / sum(votes)

    return of


def _linear(stage: Stage) -> Callable[[Sequence[float]], float]:
    (row,) = _rows(stage, "data")
    if row["isMultinomial"] or row["numClasses"] != 2:
        raise ValueError("its logistic regression is multinomial")
    intercept, matrix = _dense(row["interceptVector"])[0], row["coefficientMatrix"]
    weights = _dense_matrix(matrix)

    def of(vector: Sequence[float]) -> float:
        return _logistic(sum(weight * value for weight, value in zip(weights, vector, strict=True)) + intercept)

    return of


def _dense(vector: Mapping[str, Any]) -> list[float]:
    if vector["type"] == 1:
        return list(vector["values"])
    values = [0.0] * vector["size"]
    for at, value in zip(vector["indices"], vector["values"], strict=True):
        values[at] = value
    return values


def _dense_matrix(matrix: Mapping[str, Any]) -> list[float]:
    """The one row of a matrix of coefficients, dense, or sparse by columns (or by rows, where it is transposed)."""
    if matrix["type"] == 1:
        return list(matrix["values"])
    values = [0.0] * matrix["numCols"]
    pointers, indices = matrix["colPtrs"], matrix["rowIndices"]
    if matrix["isTransposed"]:
        for at, value in zip(indices, matrix["values"], strict=True):
            values[at] = value
        return values
    for column in range(matrix["numCols"]):
        for at in range(pointers[column], pointers[column + 1]):
            values[column] = matrix["values"][at]
    return values


def _logistic(margin: float) -> float:
    """1 / (1 + e^-margin), which no margin overflows."""
    try:
        return 1 / (1 + math.exp(-margin))
    except OverflowError:
        return 0.0


_STAGES: dict[str, Callable[[Stage], Callable[[Columns], None]]] = {
    INDEXER: _indexer,
    ENCODER: _encoder,
    ASSEMBLER: _assembler,
    BOOSTED: _classifier(_boosted),
    FOREST: _classifier(_forest),
    TREE: _classifier(_forest),
    LOGISTIC: _classifier(_linear),
}
