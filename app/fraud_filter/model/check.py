"""Whether a saved model can run in the filter: all that is wrong with it, by the names of its stages. Knows no Spark.

A stage answers every payment, or the query ends: what throws for a value that it has not seen is refused, and what
leaves rows out as well. The audit computes each score by itself, so that stages it does not know are refused, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from fraud_filter.errors import UsageError
from fraud_filter.model.saved import SavedModel, Stage
from fraud_filter.schema import PaymentSchema
from fraud_filter.text.nearest import did_you_mean

INDEXER, ENCODER, ASSEMBLER = "StringIndexerModel", "OneHotEncoderModel", "VectorAssembler"
BOOSTED, FOREST, TREE = "GBTClassificationModel", "RandomForestClassificationModel", "DecisionTreeClassificationModel"
LOGISTIC = "LogisticRegressionModel"
CLASSIFIERS = (BOOSTED, FOREST, TREE, LOGISTIC)
PREPARING = (INDEXER, ENCODER, ASSEMBLER)
_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "BOOLEAN", "DECIMAL")


def check_model(saved: SavedModel, columns: PaymentSchema) -> None:
    """Checks a model against what a payment has: its fields, then the features of its key.

    Raises:
        UsageError: a line for each reason against it.
    """
    flaws = [
        *_missing(saved, columns),
        *_of_stages(saved),
        *_of_encoders(saved),
        *_of_types(saved, columns),
        *_of_end(saved),
    ]
    if flaws:
        raise UsageError("\n".join(str(saved.refused(flaw)) for flaw in flaws))


def _missing(saved: SavedModel, columns: PaymentSchema) -> Iterator[str]:
    known = [field.name for field in columns.fields]
    for name in saved.inputs:
        if name not in known:
            yield f"its input {name!r} is neither a field nor a feature{did_you_mean(name, known)}"


def _of_stages(saved: SavedModel) -> Iterator[str]:
    for stage in saved.stages:
        if stage.kind not in (*PREPARING, *CLASSIFIERS):
            known = ", ".join((*PREPARING, *CLASSIFIERS))
            yield f"its stage {stage.uid} ({stage.kind}) is none that every mode runs and the audit knows: {known}"
        elif stage.kind in (INDEXER, ASSEMBLER) and stage.params.get("handleInvalid") != "keep":
            how = stage.params.get("handleInvalid")
            what = "leaves out records" if how == "skip" else "ends the query"
            yield f'its stage {stage.uid} ({stage.kind}) has handleInvalid {how!r}, which {what}; set it to "keep"'


def _of_encoders(saved: SavedModel) -> Iterator[str]:
    """An index that an encoder does not know ends the query; it knows all that an indexer gives."""
    indexed = {name for stage in saved.stages if stage.kind == INDEXER for name in stage.outputs}
    for stage in saved.stages:
        wrong = [name for name in stage.inputs if stage.kind == ENCODER and name not in indexed]
        if wrong:
            yield f"its stage {stage.uid} ({stage.kind}) encodes {wrong[0]!r}, which no {INDEXER} of the model gives"


def _of_types(saved: SavedModel, columns: PaymentSchema) -> Iterator[str]:
    types = {field.name: field.type for field in columns.fields}
    for stage in saved.stages:
        for name in stage.inputs:
            given = types.get(name)
            if given is None or stage.kind not in (INDEXER, ASSEMBLER):
                continue
            is_right = given == "STRING" if stage.kind == INDEXER else given.startswith(_NUMBERS)
            if not is_right:
                wanted = "a STRING" if stage.kind == INDEXER else "a number or a BOOLEAN"
                yield f"its stage {stage.uid} ({stage.kind}) takes {wanted}; {name!r} is of type {given}"


def _of_end(saved: SavedModel) -> Iterator[str]:
    last: Stage | None = saved.stages[-1] if saved.stages else None
    if last is None or last.kind not in CLASSIFIERS or not last.params.get("probabilityCol"):
        yield f"it gives no probability; its last stage has to be one of {', '.join(CLASSIFIERS)}, with probabilityCol"
        return
    if any(stage.kind in CLASSIFIERS for stage in saved.stages[:-1]):
        yield "it has several classifiers; the last stage alone is one"
    classes = last.metadata.get("numClasses", 2)
    if classes != 2:
        yield f"it knows {classes} classes; a score is the probability of one of two"
