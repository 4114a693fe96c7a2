"""A saved Spark ML PipelineModel as files: its stages with their parameters, and its version. Knows no Spark.

Layout of Spark ML's persistence: a folder for the pipeline and for each stage, `stages/NUMBER_UID`, each with
`metadata/part-*` (JSON: class, uid, paramMap, defaultParamMap) and what the stage has learnt as Parquet.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fraud_filter.errors import UsageError

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
