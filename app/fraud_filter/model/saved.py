"""A saved Spark ML PipelineModel: its files, read; its stages and version; and whether it can run in the filter.

Layout of Spark ML's persistence: a folder for the pipeline and for each stage, `stages/NUMBER_UID`, each with
`metadata/part-*` (JSON: class, uid, paramMap, defaultParamMap) and what the stage has learnt as Parquet.

A stage answers every payment, or the query ends: what throws for a value that it has not seen is refused, and what
leaves rows out as well. The audit computes each score by itself, so that stages it does not know are refused, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fraud_filter.checkpoint.files import CheckpointError, CheckpointFiles, open_checkpoint, open_files
from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from fraud_filter.rules.ruleset import RuleSet
from fraud_filter.schema import PaymentSchema
from fraud_filter.text.nearest import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DIGITS = 12

_PIPELINE = "org.apache.spark.ml.PipelineModel"


@dataclass(frozen=True)
class Stage:
    """One stage: its class without the package, its parameters, all that its metadata say, and its files."""

    kind: str
    uid: str
    params: Mapping[str, Any]
    metadata: Mapping[str, Any]
    files: Mapping[str, bytes]

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the columns that it reads."""
        names = (self.params.get(name) for name in ("inputCol", "featuresCol"))
        return tuple(self.params.get("inputCols") or filter(None, names))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the columns that it adds."""
        several = self.params.get("outputCols")
        single = ("outputCol", "predictionCol", "rawPredictionCol", "probabilityCol")
        return tuple(several or filter(None, map(self.params.get, single)))


@dataclass(frozen=True)
class SavedModel:
    """A pipeline; `files` are all that it is made of, by their place below `location`."""

    location: str
    files: Mapping[str, bytes]

    @cached_property
    def version(self) -> str:
        """12 hexadecimal digits over the model's files."""
        digest = hashlib.sha256()
        for name, content in sorted(self.files.items()):
            digest.update(f"{name}:{len(content)}:".encode() + content)
        return digest.hexdigest()[:_DIGITS]

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Its stages, in their order.

        Raises:
            UsageError: it is no saved PipelineModel.
        """
        try:
            pipeline = self._metadata("")
            if pipeline["class"] != _PIPELINE:
                raise self.refused(f"it is a {pipeline['class']}; save a fitted pipeline, a PipelineModel")
            uids = pipeline["paramMap"]["stageUids"]
            width = len(str(len(uids)))
            return tuple(self._stage(f"stages/{at:0{width}d}_{uid}/") for at, uid in enumerate(uids))
        except (LookupError, ValueError, TypeError):
            raise self.refused("it is no saved PipelineModel; give the directory that `save` has written") from None

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Columns that it takes from outside, in the order of their use."""
        made: set[str] = set()
        needed: dict[str, None] = {}
        for stage in self.stages:
            needed |= dict.fromkeys(name for name in stage.inputs if name not in made)
            made.update(stage.outputs)
        return tuple(needed)

    def refused(self, reason: str) -> UsageError:
        """The error that refuses the model."""
        return UsageError(f"model {self.location}: {reason}")

    def _stage(self, folder: str) -> Stage:
        found = self._metadata(folder)
        own = {name.removeprefix(folder): data for name, data in self.files.items() if name.startswith(folder)}
        params = {**found.get("defaultParamMap", {}), **found["paramMap"]}
        return Stage(found["class"].rpartition(".")[2], found["uid"], params, found, own)

    def _metadata(self, folder: str) -> dict[str, Any]:
        parts = [name for name in sorted(self.files) if name.startswith(f"{folder}metadata/part-")]
        found = json.loads(self.files[parts[0]])
        if not isinstance(found, dict):
            raise TypeError
        return found


INDEXER, ENCODER, ASSEMBLER = "StringIndexerModel", "OneHotEncoderModel", "VectorAssembler"

BOOSTED, FOREST, TREE = "GBTClassificationModel", "RandomForestClassificationModel", "DecisionTreeClassificationModel"

LOGISTIC = "LogisticRegressionModel"

CLASSIFIERS = (BOOSTED, FOREST, TREE, LOGISTIC)

PREPARING = (INDEXER, ENCODER, ASSEMBLER)

#: Types that a model takes for a number.
NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "BOOLEAN", "DECIMAL")


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
            is_right = given == "STRING" if stage.kind == INDEXER else given.startswith(NUMBERS)
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


def read_model(rules: RuleSet, schema: PaymentSchema, settings: Settings) -> tuple[RuleSet, SavedModel | None]:
    """The rules that `settings.mode` runs, and their model, checked; None where they have none.

    On another file system than the local one a Java reads it.

    Raises:
        UsageError: it is no saved model, can't be read, or can't run here.
        FraudFilterError: Java does not start.
    """
    saved = _read(rules, settings)
    if saved is None:
        return rules.for_mode(settings), None
    check_model(saved, rules.without_model().columns(schema))
    left = replace(rules, model_inputs=saved.inputs, model_version=saved.version).for_mode(settings)
    return left, saved if left.model else None


def reread_model(rules: RuleSet, settings: Settings) -> SavedModel | None:
    """The model of rules that have decided; None where they had none.

    Raises:
        UsageError: it is gone, or another one lies in its place.
    """
    saved = _read(rules, settings)
    if saved and saved.version != rules.model_version:
        raise saved.refused(
            f"its version is {saved.version}, and records were decided with {rules.model_version}; put that back, and "
            "the newer one into a directory of its own"
        )
    return saved


def require_unchanged(saved: SavedModel, spark: SparkSession) -> None:
    """Compares what lies at the model's location with what was read of it; the session's own Java reads remote files.

    Raises:
        UsageError: another model lies there now, or none.
    """
    folder = local_folder(saved.location)
    try:
        files = _local(folder) if folder else dict(_walk(open_files(spark, saved.location), ""))
    except CheckpointError as error:
        raise saved.refused(f"can't be read: {error}") from None
    now = SavedModel(saved.location, files)
    if now.version != saved.version:
        raise saved.refused(
            f"what lies there is no longer the model that this filter began with (version {saved.version}, now "
            f"{now.version}): put that back, and the newer one into a directory of its own"
        )


def _read(rules: RuleSet, settings: Settings) -> SavedModel | None:
    if rules.model is None:
        return None
    folder = local_folder(rules.model)
    files = _local(folder) if folder else _remote(rules.model, settings)
    if not files:
        raise UsageError(f"model {rules.model}: there are no files; give the directory of a saved PipelineModel")
    saved = SavedModel(rules.model, files)
    assert saved.stages is not None  # noqa: S101 - read now, so that it is refused here
    return saved


def local_folder(location: str) -> Path | None:
    """The directory where the location names one of this machine; None: of another file system."""
    parts = urlsplit(location)
    if parts.scheme not in ("", "file"):
        return None
    return Path(parts.path if parts.scheme else location)


def _local(folder: Path) -> dict[str, bytes]:
    try:
        found = sorted(path for path in folder.rglob("*") if path.is_file())
        return {str(path.relative_to(folder)): path.read_bytes() for path in found if _is_part(path.name)}
    except OSError as error:
        raise UsageError(f"model {folder}: can't be read: {error.strerror or error}") from None


def _remote(location: str, settings: Settings) -> dict[str, bytes]:
    try:
        with open_checkpoint(location, settings) as files:
            return dict(_walk(files, ""))
    except CheckpointError as error:
        raise UsageError(f"model {location}: can't be read: {error}") from None


def _walk(files: CheckpointFiles, folder: str) -> list[tuple[str, bytes]]:
    found = [(folder + name, files.read(folder + name)) for name in files.names(folder) if _is_part(name)]
    for name in files.names(folder, directories=True):
        found += _walk(files, f"{folder}{name}/")
    return found


def _is_part(name: str) -> bool:
    """Not what Hadoop keeps beside: checksums and marks."""
    return not name.startswith((".", "_"))
