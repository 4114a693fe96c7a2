"""Before the filter's query starts: its checkpoint is made startable in the mode that it is to run in."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.checkpoint.kept import INPUT, STATE, KeptState, kept_content, read_input, write_state
from fraud_filter.checkpoint.plan import COMMITS, GONE, OFFSETS, Remove, Step, UnrepairableError, Write
from fraud_filter.checkpoint.reading import read_contents
from fraud_filter.checkpoint.repair import Repair, repair, restart, skip
from fraud_filter.config import Settings, refused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)


def open_files(spark: SparkSession, settings: Settings) -> CheckpointFiles:
    """The files of the checkpoint, by the session's own Java.

    Raises:
        UsageError: its location is no path.
        CheckpointError: the file system refuses.
    """
    session: Any = spark._jsparkSession
    conf = session.sessionState().newHadoopConf()
    return CheckpointFiles(spark._jvm, spark.sparkContext._gateway, conf, settings.checkpoint)


def prepare_checkpoint(files: CheckpointFiles, settings: Settings) -> None:
    """Repairs what another mode, or a kill, has left in the checkpoint and `settings.mode` could not start from.

    Logs `event=checkpoint_repaired`; the old logs stay in the checkpoint until the next repair. The filter's sinks
    remember no batch numbers, so reading a batch again with another end is right for all of them.

    Raises:
        UsageError: nothing proves where to go on from.
        FraudFilterError: the file system refuses.
    """
    for log in (OFFSETS, COMMITS):
        stray = files.drop_stray_checksums(log)
        if stray:
            _log.warning("event=checksums_dropped log=%s files=%s", log, ",".join(stray))
    try:
        done = repair(files, settings.mode)
    except UnrepairableError as error:
        reason = f"can't be started from in {settings.mode} mode: {error}"
        raise refused("checkpoint", settings.checkpoint, reason) from None
    _tell(done, settings)


def go_on_at(files: CheckpointFiles, settings: Settings, offsets: Mapping[int, int], why: str = GONE) -> None:
    """Has the query begin at the `offsets` of the input topic, by partition; `why`, for the log, goes on "records".

    Logs `event=checkpoint_repaired`. Where nothing is committed the query begins at `starting_offsets`.

    Raises:
        CheckpointError: the file system refuses.
    """
    _tell(skip(files, settings.mode, settings.input_topic, offsets, why), settings)


def change_state(files: CheckpointFiles, settings: Settings, wanted: KeptState | None) -> None:
    """Has the query go on where the newest commit ended with an empty state, or without one.

    Where nothing ran yet it only notes the state. A repair that was killed has been finished before.

    Raises:
        UsageError: nothing proves where to go on from.
        FraudFilterError: the file system refuses.
    """
    contents = read_contents(files)
    if not (contents.offsets or contents.commits or contents.stateful):
        write_state(files, wanted)
        return
    kept = read_input(files)

    def notes(at: dict[int, int]) -> list[Step]:
        noted: list[Step] = [Write(STATE, kept_content(wanted)) if wanted else Remove(STATE)]
        return [*noted, Write(INPUT, kept_content(replace(kept, restart=at)))] if kept and at else noted

    why = "the state of features begins empty" if wanted else f"{settings.mode} mode keeps no state of features"
    try:
        done = restart(files, settings.mode, settings.input_topic, notes, why)
    except UnrepairableError as error:
        reason = f"can't be started from in {settings.mode} mode: {error}"
        raise refused("checkpoint", settings.checkpoint, reason) from None
    _log.warning("event=%s mode=%s", "state_begins_empty" if wanted else "state_dropped", settings.mode)
    _tell(done, settings)


def _tell(done: Repair, settings: Settings) -> None:
    if done.plan.steps or done.kept_aside:
        _log.warning(
            'event=checkpoint_repaired mode=%s query=%s steps=%d kept_aside=%s reason="%s"',
            settings.mode, settings.query_name, len(done.plan.steps), done.kept_aside, "; ".join(done.plan.reasons),
        )  # fmt: skip
