"""One query run: a Java process of its own, a session, the query, and what ends it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fraud_filter.checkpoint.files import CheckpointError, CheckpointFiles
from fraud_filter.checkpoint.notes import write_active
from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.java.gateway import LaunchStoppedError
from fraud_filter.kafka.refusals import NoBrokerError
from fraud_filter.lock.checkpoint_lock import Lock
from fraud_filter.metrics.catalogue import MODEL
from fraud_filter.monitor.monitor import Monitor, StartPosition
from fraud_filter.query import preflight
from fraud_filter.query.fingerprint import fingerprint
from fraud_filter.rules import check as rule_check
from fraud_filter.spark import session
from fraud_filter.supervisor.cluster import asked_too_few, await_executors, await_slots, check_shared
from fraud_filter.supervisor.explaining import explain_end
from fraud_filter.supervisor.failures import Reason, RestartableError
from fraud_filter.supervisor.handover import HandingOver
from fraud_filter.supervisor.java import Java, silence
from fraud_filter.supervisor.query_run import HANDED_OVER, Ending, outlived_by_java, start_query
from fraud_filter.supervisor.rollback import note_former
from fraud_filter.supervisor.set_aside import Search, set_aside
from fraud_filter.supervisor.signals import Stop
from fraud_filter.supervisor.standby import Standby
from fraud_filter.supervisor.start_position import place_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_log = logging.getLogger(__name__)
#: A query that has failed has nothing to end well: what was not committed is read again.
_END_FAILED_S = 5.0
#: After a handover: who asked takes the lock before we want it again, and the processor time that a start needs.
_AFTER_YOU_S = 3.0
#: And after it gave way: so many looks of a standby that waits, before we want the lock again.
_AFTER_LOOKS = 4
#: Spark's own end after the query's; nothing is at stake any more.
_END_S = 8.0


@dataclass(frozen=True)
class Attempt:
    """What a query run needs. `first`: nothing ran before it, so that bad input ends the program.

    `again` is told when only the query is started again, in the same Java process. `search` is made before the query
    starts where that ended at the same place again. `standby`: waits for its turn first.
    """

    settings: Settings
    inputs: preflight.Inputs
    monitor: Monitor
    stop: Stop
    lock: Lock
    on_start: Callable[[StreamingQuery], None] | None
    again: Callable[[RestartableError], None]
    first: bool
    search: Search
    standby: Standby | None = None

    def run(self) -> None:
        """Runs the query until somebody wishes it to stop.

        Raises:
            RestartableError: it ended, and may do better from its checkpoint.
            FraudFilterError: it ended for good.
        """
        self.monitor.set_state("starting")
        began = time.monotonic()
        inputs = self.inputs if self.first else self._recount()
        self._renew_lock()
        java = self._launch(inputs)
        if not java:
            return
        spark = None
        seconds = _END_FAILED_S
        try:
            spark = self._connect(java, inputs)
            life: Attempt | None = self
            while life and not self.stop.requested:
                if life.standby and not life.standby.is_over:
                    if not life._wait(life.standby, java, spark, inputs):
                        return
                    life, began = replace(life, first=False), time.monotonic()
                    inputs = replace(inputs, partitions=self.monitor.partitions or inputs.partitions)
                life = life._keep_running(java, spark, inputs, began)
            seconds = _END_S
        except Exception as error:
            if not self.stop.requested:
                cause = RestartableError("lock-lost", self.lock.lost) if self.lock.lost else error
                raise explain_end(cause, java, spark, self.settings) from None
        finally:
            self.monitor.unwatch()
            self.monitor.set_state("stopping" if self.stop.requested else "backing-off")
            java.end(spark, seconds)

    def _wait(self, standby: Standby, java: Java, spark: SparkSession, inputs: preflight.Inputs) -> bool:
        """Checks the rules and waits as a standby; whether it is our turn then, and not the end."""
        with self.stop.hastened_by(java.kill):
            if self.first:
                rule_check.check_rules(spark, inputs.rules, inputs.schema)
            await_slots(spark, inputs, self.settings, self.monitor, self.stop)
            if self.first and not self.stop.requested:
                check_shared(spark, inputs, self.settings)
            try:
                return standby.wait(java, spark, inputs)
            except (CheckpointError, NoBrokerError) as error:
                if self.first:
                    raise
                away: Reason = "checkpoint-away" if isinstance(error, CheckpointError) else "broker-away"
                raise RestartableError(away, str(error)) from None

    def _keep_running(self, java: Java, spark: SparkSession, inputs: preflight.Inputs, began: float) -> Attempt | None:
        """Starts the query and follows it; also after what Java outlives, for its own start is most of a restart.

        Returns:
            Whose turn it is next in this Java: that of a standby, which is warm after a handover.
        """
        life = self
        while started := life._start(java, spark, inputs, began):
            query, place = started
            try:
                life._follow(java, spark, query, inputs, place)
            except RestartableError as error:
                waits_again = self._gives_way(error)
                if not (waits_again or outlived_by_java(error)) or java.returncode is not None or java.overdue:
                    raise
                self.again(error)
                life = replace(self, first=False)
                if waits_again:
                    is_warm = error is HANDED_OVER  # else its executors are new ones
                    waits_again.queue_again(is_warm=is_warm)
                    if not is_warm:
                        self.stop.event.wait(self.lock.look_s * _AFTER_LOOKS)
                    return life
                began = time.monotonic()
                self.monitor.set_state("starting")
                inputs = self._recount()
                if asked_too_few(spark, inputs):
                    raise
            else:
                life._end_query(java, query)
                break
        return None

    def _gives_way(self, error: RestartableError) -> Standby | None:
        """The standby that the filter is from now on, where another one can go on in its place."""
        return self.standby if error is HANDED_OVER or error.reason == "slots-lacking" else None

    def _recount(self) -> preflight.Inputs:
        try:
            return replace(self.inputs, partitions=preflight.count_partitions(self.settings) or self.inputs.partitions)
        except FraudFilterError as error:
            raise RestartableError("broker-away", str(error)) from None

    def _renew_lock(self) -> None:
        try:
            self.lock.renew()
        except CheckpointError as error:
            raise RestartableError("checkpoint-away", str(error)) from None

    def _launch(self, inputs: preflight.Inputs) -> Java | None:
        """Java, or None when somebody wished to stop before it had started."""
        requested = self.stop.event.is_set
        try:
            return Java(session.launch(self.settings, inputs.mode, self.lock.descriptor, requested))
        except LaunchStoppedError:
            return None
        except FraudFilterError as error:
            if self.first:
                raise
            raise RestartableError("java-gone", str(error)) from None

    def _connect(self, java: Java, inputs: preflight.Inputs) -> SparkSession:
        with java.killed_after(self.settings.start_timeout_s), self.stop.hastened_by(java.kill):
            try:
                spark = session.connect(java.gateway, self.settings, inputs.cores)
            except UsageError as error:
                if self.first:
                    raise
                raise RestartableError("spark-away", str(error)) from None
            await_executors(spark, self.settings, self.stop)
            return spark

    def _start(
        self, java: Java, spark: SparkSession, inputs: preflight.Inputs, began: float
    ) -> tuple[StreamingQuery, StartPosition] | None:
        """The started query and where, or None when somebody wished to stop before.

        The life `began` on the monotonic clock.
        """
        settings = self.settings
        with self.stop.hastened_by(java.kill):
            if self.first:
                rule_check.check_rules(spark, inputs.rules, inputs.schema)
                slots = preflight.check_slots(spark, inputs, settings)
                check_shared(spark, inputs, settings)
            else:
                slots = await_slots(spark, inputs, settings, self.monitor, self.stop)
        with java.killed_after(settings.start_timeout_s), self.stop.hastened_by(java.kill):
            settings, place = self._place(spark)
        has_moved = False
        if self.search.start_at(place.at) and not self.stop.requested:
            with self.stop.hastened_by(java.kill):
                has_moved = set_aside(self.search, spark, java, inputs, place, self.monitor.metrics)
        with java.killed_after(settings.start_timeout_s), self.stop.hastened_by(java.kill):
            if has_moved:
                settings, place = self._place(spark)
            if self.stop.requested:
                return None
            prepared = self.standby.prepared if self.standby else None
            query = start_query(spark, inputs, settings, place.topic_id, prepared, place.watermark_ms)
            with suppress(CheckpointError):  # it is for standbys; the query does without
                write_active(place.files, fingerprint(inputs, self.settings))
        self.monitor.metrics.set_slots(inputs.slots, slots)
        if inputs.model:
            self.monitor.metrics.of(MODEL, inputs.model.version).set(1)
        _log.info(
            "event=started mode=%s query=%s run=%s partitions=%d task_slots=%d rules=%d seconds=%.1f",
            settings.mode, settings.query_name, query.runId, inputs.partitions, slots, len(inputs.rules.rules),
            time.monotonic() - began,
        )  # fmt: skip
        return query, place

    def _place(self, spark: SparkSession) -> tuple[Settings, StartPosition]:
        """A restart waits for the checkpoint's file system."""
        try:
            return place_query(spark, self.inputs, self.settings, self.monitor, self.stop, self.lock)
        except CheckpointError as error:
            if self.first:
                raise
            raise RestartableError("checkpoint-away", str(error)) from None

    def _follow(
        self, java: Java, spark: SparkSession, query: StreamingQuery, inputs: preflight.Inputs, place: StartPosition
    ) -> None:
        """Returns when somebody wishes to stop; once it watches, the main thread makes no call that could hang."""
        ending = Ending(query, self.settings, holds_tasks=inputs.mode.holds_tasks)
        with java.killed_after(self.settings.start_timeout_s), self.stop.hastened_by(java.kill):
            self.monitor.watch(spark, query, inputs, place, ending.alarm, gives_way=self.standby is not None)
        if self.on_start:
            self.on_start(query)
        handover = HandingOver(spark, query, inputs.mode, place.files, ending.hand_over)
        error = ending.wait(java, self.stop)
        if isinstance(error, RestartableError) and error.reason == "stalled":
            java.kill()  # else each call that still waits for it delays the next filter
        handover.close()
        if error is None:
            return
        if handover.agreed and isinstance(error, RestartableError) and error.reason in ("handed-over", "query-ended"):
            self._hand_over(java, query, place.files)
        if outlived_by_java(error):
            with suppress(Exception):  # it is on its way out: what can't be ended well is killed
                self._end_query(java, query)
        raise error

    def _hand_over(self, java: Java, query: StreamingQuery, files: CheckpointFiles) -> None:
        """Ends the query and gives the lock to who asked for it: a query that has ended writes no checkpoint any more.

        Raises:
            RestartableError: always; a filter that is no standby has no other query run after that.
        """
        self._end_query(java, query)
        with java.killed_after(self.settings.stop_timeout_s), suppress(CheckpointError):  # it is for a rollback alone
            note_former(files, self.standby.id if self.standby else "")
        self.lock.release()
        _log.warning("event=handed_over mode=%s query=%s", self.settings.mode, self.settings.query_name)
        self.stop.event.wait(_AFTER_YOU_S)
        raise HANDED_OVER

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
