"""A standby's warm-up: the filter's own plan runs for some seconds, and what it decides goes nowhere.

Java loads its classes, Spark generates and Java compiles the very code that the query will run: code that is generated
again from the same plan is found again. So the plan is the query's own, whatever the mode; only its sink differs.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.config import Settings
from fraud_filter.kafka.consumer import find_input_bounds, open_consumer
from fraud_filter.modes import Mode
from fraud_filter.query import sinks
from fraud_filter.query.preflight import Inputs, begin_at
from fraud_filter.supervisor.failures import explain_failure
from fraud_filter.supervisor.query_run import prepare, start
from fraud_filter.text.logs import get_logger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_log = get_logger(__name__)
#: Payments of each partition that are judged at least, where the topic holds so many: Java compiles what runs often.
#: More than what comes in meanwhile is not read, so that the processor time is bounded, too.
_RECORDS = 10_000
#: Real-time mode knows few sinks by name, and not the one that takes all and keeps nothing.
_SINKS_ARE_CHECKED = "spark.sql.streaming.realTimeMode.allowlistCheck"
#: In the checkpoint, which executors reach.
_PLACE = "fraud-filter/warm-up-"
_LOOK_S = 0.1
#: A batch of real-time mode, so that a round ends soon: a start is what a takeover waits for. The tasks of the first
#: one take seconds to begin, and have the rest of it to read.
_SHORTEST_BATCH = "spark.sql.streaming.realTimeMode.minBatchDuration"
_FIRST_BATCH_S, _BATCH_S = 5, 1
#: Of a mode that tells of no batch. The first round is long enough for tasks to start and to read.
_FIRST_ROUND_S, _ROUND_S = 3.0, 1.0
_ROUNDS = 8
#: After the first round; a batch may find nothing to read, and is not told of then.
_PATIENCE_S = 3.0
#: What the reader of a state needs to know of one that real-time mode writes (MicroBatchExecution, Spark 4.3).
_AS_WRITTEN = {
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def warm_up(
    spark: SparkSession,
    files: CheckpointFiles,
    inputs: Inputs,
    settings: Settings,
    topic_id: str,
    is_due: Callable[[], bool],
) -> None:
    """Starts and stops the query over the newest payments for some rounds, or until `is_due`; writes none to Kafka.

    Each round goes on from the checkpoint of the one before: what a start does is compiled, too. It lasts until a batch
    has ended, the first until one with payments has, or `start_timeout_s` is over: to plan a model and to generate its
    code takes long beside a filter that works. The others end after `standby_warm_up_s`.

    Raises:
        NoBrokerError: no broker answers.
        CheckpointError: the checkpoint's file system refuses.
        UsageError: there is no such topic, or Spark refuses the query.
        RestartableError: the query failed.
    """
    folder = f"{_PLACE}{uuid.uuid4().hex[:8]}"
    mode = inputs.mode
    newest, has_payments = _newest(settings)
    decisions = prepare(spark, inputs, newest, topic_id).decisions
    place = f"{settings.checkpoint.rstrip('/')}/{folder}"
    first, later = (
        sinks.discard(decisions, mode, settings.model_copy(update={"real_time_duration": f"{s} seconds"}), place)
        for s in (_FIRST_BATCH_S, _BATCH_S)
    )
    try:
        if settings.sink == "kafka":
            sinks.open_producers(spark, settings, inputs.partitions)
        has_state, payments = bool(inputs.state_partitions), 0
        until = time.monotonic() + (settings.start_timeout_s if has_payments else settings.standby_warm_up_s)

        def is_enough() -> bool:
            return is_due() or time.monotonic() > until

        for number in range(_ROUNDS):
            if is_enough():
                break
            with configured(spark, {_SINKS_ARE_CHECKED: "false", _SHORTEST_BATCH: str(_BATCH_S * 1000)}):
                running = start(later if number else first, settings)
            began = time.monotonic()
            while running.isActive and not is_enough():
                if not mode.sends_progress and not spark.sparkContext.statusTracker().getActiveStageIds():
                    began = time.monotonic()  # no task runs yet
                if _is_over(running, mode, began, is_first=number == 0):
                    break
                time.sleep(_LOOK_S)
            if not number:
                until = time.monotonic() + settings.standby_warm_up_s
            if error := running.exception():
                raise explain_failure(error, settings)
            payments += sum(progress.numInputRows for progress in running.recentProgress)
            running.stop()
            has_state = has_state and not is_enough() and _load_state(spark, settings)
        known = payments if mode.sends_progress else "unknown"
        _log.info("warmed_up", mode=settings.mode, query=settings.query_name, payments=known)
    finally:
        files.remove(folder)


def _is_over(round_: StreamingQuery, mode: Mode, began: float, *, is_first: bool) -> bool:
    """Whether a round that `began` on the monotonic clock has shown enough."""
    elapsed_s = time.monotonic() - began
    if mode.sends_progress and (is_first or elapsed_s < _PATIENCE_S):
        progress = round_.lastProgress
        return progress is not None and (progress.numInputRows > 0 or not is_first)
    return elapsed_s > (_FIRST_ROUND_S if is_first else _ROUND_S)


def _load_state(spark: SparkSession, settings: Settings) -> bool:
    """Has the executors load the state that the active filter has committed, and forget it; whether there was one.

    What copies the files of a large state is slow until Java has compiled it: a second for 17 MB.
    """
    from pyspark.errors import PySparkException

    with configured(spark, _AS_WRITTEN):
        try:
            state = spark.read.format("statestore").load(settings.checkpoint)
            state.limit(1).write.format("noop").mode("overwrite").save()
        except PySparkException as error:
            _log.info("state_not_warmed", reason=str(error).partition("\n")[0])
            return False
    return True


def _newest(settings: Settings) -> tuple[Settings, bool]:
    """The settings with which the source begins shortly before the end of the topic; whether payments lie there."""
    if settings.source != "kafka":
        return settings, False
    with open_consumer(settings) as consumer:
        bounds = find_input_bounds(consumer, settings)
    at = {number: max(low, end - _RECORDS) for number, (low, end) in bounds.items()}
    has_payments = any(at[number] < end for number, (_, end) in bounds.items())
    return begin_at(settings.model_copy(update={"fail_on_data_loss": False}), at, at), has_payments


@contextmanager
def configured(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Within the block the session has this configuration, which no other query sees."""
    before = {name: spark.conf.get(name, None) for name in conf}
    try:
        for name, value in conf.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, former in before.items():
            spark.conf.unset(name) if former is None else spark.conf.set(name, former)
