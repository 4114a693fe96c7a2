"""Reads the model that the rules name, from any file system that Hadoop knows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fraud_filter.checkpoint.files import CheckpointError, CheckpointFiles
from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from fraud_filter.model.check import check_model
from fraud_filter.model.saved import SavedModel
from fraud_filter.rules.ruleset import RuleSet
from fraud_filter.schema import PaymentSchema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    left = rules.knowing(saved.inputs, saved.version).for_mode(settings)
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
    session: Any = spark._jsparkSession
    folder = local_folder(saved.location)
    try:
        files = (
            _local(folder)
            if folder
            else dict(
                _walk(
                    CheckpointFiles(
                        spark._jvm, spark.sparkContext._gateway, session.sessionState().newHadoopConf(), saved.location
                    ),
                    "",
                )
            )
        )
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
    from fraud_filter.checkpoint.files import open_checkpoint

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
