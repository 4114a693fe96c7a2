"""Where a query run starts: its checkpoint is ours, is made startable, and says where to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fraud_filter.checkpoint.files import CheckpointFiles, open_files
from fraud_filter.checkpoint.repair import finish, prepare_checkpoint
from fraud_filter.config import Settings
from fraud_filter.lock.checkpoint_lock import Lock
from fraud_filter.monitor.monitor import Monitor, Place
from fraud_filter.query.preflight import Inputs
from fraud_filter.rules.version import ruling_of
from fraud_filter.supervisor.resume.settle import note_rules, settle
from fraud_filter.supervisor.resume.state import find_watermark, fit_lag, settle_state
from fraud_filter.supervisor.signals import Stop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def place_query(
    spark: SparkSession, inputs: Inputs, settings: Settings, monitor: Monitor, stop: Stop, lock: Lock
) -> tuple[Settings, Place]:
    """The settings with which the query over `inputs` starts, and where. What is gone from its topic is counted.

    Raises:
        CheckpointError: the checkpoint's file system refuses, perhaps for a while.
        FraudFilterError: the query can't go on from the checkpoint; see `prepare_checkpoint`, `settle`.
    """
    files = open_files(spark, settings)
    lock.hold(files, lambda: stop.requested)
    finish(files)
    settle_state(files, inputs, settings)
    prepare_checkpoint(files, settings)
    if settings.source != "kafka":
        return settings, Place("", {}, files)
    return _go_on(files, inputs, settings, monitor)


def _go_on(files: CheckpointFiles, inputs: Inputs, settings: Settings, monitor: Monitor) -> tuple[Settings, Place]:
    beginning = settle(files, settings, monitor.ends, has_started=monitor.has_started)
    monitor.count_lost(beginning.new_losses)
    settings = beginning.settings
    note_rules(files, ruling_of(inputs.rules, inputs.schema, settings), beginning)
    watermark_ms = 0
    if inputs.rules.features:
        settings = fit_lag(settings, beginning.at, beginning.ends)
        watermark_ms = find_watermark(files, inputs, settings)
    return settings, Place(beginning.topic_id, beginning.at, files, watermark_ms)
