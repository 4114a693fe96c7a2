"""One query run: a Java process of its own, a session, the query, and what ends it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fraud_filter.checkpoint.files import CheckpointError, CheckpointFiles
from fraud_filter.checkpoint.startup import open_files, prepare_checkpoint
from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.lock.lock import Lock
from fraud_filter.monitor.monitor import Monitor, Place
from fraud_filter.query import preflight
from fraud_filter.rules import check as rule_check
from fraud_filter.spark import session
from fraud_filter.spark.executors import count_slots
from fraud_filter.supervisor.beginning import settle
from fraud_filter.supervisor.ending import Ending, outlived_by_java
from fraud_filter.supervisor.failures import DataLossError, RestartableError, explain_failure
from fraud_filter.supervisor.java import Java
from fraud_filter.supervisor.losses import examine, require_all
from fraud_filter.supervisor.signals import Stop
from fraud_filter.supervisor.silence import silence
from fraud_filter.supervisor.starting import start_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_log = logging.getLogger(__name__)
#: A query that has failed or hangs has nothing to end well: what was not committed is read again.
_END_FAILED_S = 5.0
_END_STALLED_S = 1.0
#: Spark's own end after the query's; nothing is at stake any more.
_END_S = 8.0


@dataclass(frozen=True)
class Attempt:
    """What a query run needs. `first`: nothing ran before it, so that bad input ends the program.

    `again` is told when only the query is started again, in the same Java process.
    """

    settings: Settings
    inputs: preflight.Inputs
    monitor: Monitor
    stop: Stop
    lock: Lock
    on_start: Callable[[StreamingQuery], None] | None
    again: Callable[[RestartableError], None]
    first: bool

    def run(self) -> None:
        """Runs the query until somebody wishes it to stop.

        Raises:
            RestartableError: it ended, and may do better from its checkpoint.
            FraudFilterError: it ended for good.
        """
        self.monitor.set_state("starting")
        began = time.monotonic()
        inputs = self.inputs if self.first else self._recount()
        java = self._launch(inputs)
        spark = None
        seconds = _END_FAILED_S
        try:
            spark = self._connect(java)
            self._keep_running(java, spark, inputs, began)
            seconds = _END_S
        except Exception as error:
            if isinstance(error, RestartableError) and error.reason == "stalled":
                seconds = _END_STALLED_S
            if not self.stop.requested:
                raise self._explain(error, java, spark) from None
        finally:
            self.monitor.unwatch()
            self.monitor.set_state("stopping" if self.stop.requested else "backing-off")
            java.end(spark, seconds)

    def _keep_running(self, java: Java, spark: SparkSession, inputs: preflight.Inputs, began: float) -> None:
        """Starts the query and follows it; also after what Java outlives, for its own start is most of a restart."""
        life = self
        while started := life._start(java, spark, inputs, began):
            query, place = started
            try:
                life._follow(java, spark, query, inputs, place)
            except RestartableError as error:
                if not outlived_by_java(error) or java.returncode is not None or java.overdue:
                    raise
                self.again(error)
                began = time.monotonic()
                self.monitor.set_state("starting")
                life, inputs = replace(self, first=False), self._recount()
            else:
                life._end_query(java, query)
                return

    def _recount(self) -> preflight.Inputs:
        try:
            return replace(self.inputs, partitions=preflight.count_partitions(self.settings) or self.inputs.partitions)
        except FraudFilterError as error:
            raise RestartableError("broker-away", str(error)) from None

    def _launch(self, inputs: preflight.Inputs) -> Java:
        try:
            return Java(session.launch(self.settings, inputs.mode, self.lock.descriptor))
        except FraudFilterError as error:
            if self.first:
                raise
            raise RestartableError("spark-away", str(error)) from None

    def _connect(self, java: Java) -> SparkSession:
        with java.killed_after(self.settings.start_timeout_s), self.stop.hastened_by(java.kill):
            try:
                return session.connect(java.gateway, self.settings)
            except UsageError as error:
                if self.first:
                    raise
                raise RestartableError("spark-away", str(error)) from None

    def _start(
        self, java: Java, spark: SparkSession, inputs: preflight.Inputs, began: float
    ) -> tuple[StreamingQuery, Place] | None:
        """The started query and where, or None when somebody wished to stop before.

        The life `began` on the monotonic clock.
        """
        settings = self.settings
        with self.stop.hastened_by(java.kill):
            if self.first:
                rule_check.check_rules(spark, inputs.rules, inputs.schema, settings.max_record_bytes)
                slots = preflight.check_slots(spark, inputs, settings)
            else:
                slots = self._await_slots(spark, inputs)
        with java.killed_after(settings.start_timeout_s), self.stop.hastened_by(java.kill):
            settings, place = self._prepare(spark)
            if self.stop.requested:
                return None
            query = start_query(spark, inputs, settings, place.topic_id)
        self.monitor.metrics.set_slots(inputs.partitions if inputs.mode.holds_tasks else 0, slots)
        _log.info(
            "event=started mode=%s query=%s run=%s partitions=%d task_slots=%d rules=%d seconds=%.1f",
            settings.mode, settings.query_name, query.runId, inputs.partitions, slots, len(inputs.rules.rules),
            time.monotonic() - began,
        )  # fmt: skip
        return query, place

    def _await_slots(self, spark: SparkSession, inputs: preflight.Inputs) -> int:
        """Waits until there is a task slot for each partition; only a stop request, or Java's end, ends the wait."""
        slots = count_slots(spark)
        if preflight.lacks_slots(inputs, slots):
            self.monitor.set_state("waiting-for-slots")
        while preflight.lacks_slots(inputs, slots) and not self.stop.requested:
            _log.warning(
                "event=waiting_for_slots mode=%s query=%s needed=%d granted=%d",
                self.settings.mode, self.settings.query_name, inputs.partitions, slots,
            )  # fmt: skip
            self.monitor.metrics.set_slots(inputs.partitions, slots)
            self.stop.event.wait(2)
            slots = count_slots(spark)
        return slots

    def _prepare(self, spark: SparkSession) -> tuple[Settings, Place]:
        """The settings with which the query starts, and where; a restart waits for the checkpoint's file system."""
        try:
            files = open_files(spark, self.settings)
            self.lock.hold(files, lambda: self.stop.requested)
            prepare_checkpoint(files, self.settings)
            return self._settle(files)
        except CheckpointError as error:
            if self.first:
                raise
            raise RestartableError("checkpoint-away", str(error)) from None

    def _settle(self, files: CheckpointFiles) -> tuple[Settings, Place]:
        """Counts what is gone from the topic, where the query may go on without."""
        if self.settings.source != "kafka":
            return self.settings, Place("", {}, files)
        beginning = settle(files, self.settings, self.monitor.ends, has_started=self.monitor.has_started)
        self.monitor.count_lost(beginning.new_losses)
        return beginning.settings, Place(beginning.topic_id, beginning.at, files)

    def _follow(
        self, java: Java, spark: SparkSession, query: StreamingQuery, inputs: preflight.Inputs, place: Place
    ) -> None:
        """Returns when somebody wishes to stop; the main thread makes no call here that could hang."""
        ending = Ending(query, self.settings, holds_tasks=inputs.mode.holds_tasks)
        self.monitor.watch(spark, query, inputs, place, ending.alarm)
        if self.on_start:
            self.on_start(query)
        error = ending.wait(java, self.stop)
        if error is None:
            return
        if outlived_by_java(error):
            with suppress(Exception):  # it is on its way out: what can't be ended well is killed
                self._end_query(java, query)
        raise error

    def _require_all(self, spark: SparkSession) -> None:
        settings = self.settings
        if settings.source == "kafka" and settings.fail_on_data_loss:
            require_all(examine(open_files(spark, settings), settings), settings)

    def _end_query(self, java: Java, query: StreamingQuery) -> None:
        settings = self.settings
        self.monitor.unwatch()
        self.monitor.set_state("stopping")
        began = time.monotonic()
        _log.info(
            "event=stopping mode=%s query=%s signal=%s", settings.mode, settings.query_name, self.stop.signal or "none"
        )
        with java.killed_after(settings.stop_timeout_s, dump=True):
            if self.stop.requested:  # else Java goes on with the next life
                silence(java.gateway)
            query.stop()
        seconds = time.monotonic() - began
        _log.info("event=stopped mode=%s query=%s seconds=%.1f", settings.mode, settings.query_name, seconds)

    def _explain(self, error: Exception, java: Java, spark: SparkSession | None) -> Exception:
        """The error to act on; a failed query is told as the loss of records that it may have died of."""
        from py4j.protocol import Py4JError

        if lost := self.lock.lost:
            return RestartableError("lock-lost", lost)
        if isinstance(error, RestartableError) and error.reason != "query-failed":
            return error
        if java.overdue:
            return RestartableError("start-hung", f"the start took longer than {self.settings.start_timeout_s:g} s")
        if java.returncode is not None and not isinstance(error, FraudFilterError):
            return RestartableError("java-gone", f"Spark's Java process ended with code {java.returncode}")
        if isinstance(error, RestartableError | DataLossError) and spark:  # the second names the offsets less well
            try:
                with java.killed_after(self.settings.kafka_timeout_s * 2):
                    self._require_all(spark)
            except DataLossError as loss:
                return loss
            except (FraudFilterError, Py4JError, OSError):
                return error
        if isinstance(error, Py4JError | OSError):
            return explain_failure(error, self.settings)
        return error
