"""Has an engine of batches end by itself, after the batch that it is in."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

#: An engine that may end does so within milliseconds; one that does not answer for so long is another's business.
_ANSWER_S = 10.0
_LOOK_S = 0.001


class BatchEnd:
    """Sets the state of a query's engine to TERMINATED, as its `stop` does; that interrupts the batch as well.

    The engine looks at its state between two batches, and once within each: when it has planned one it interrupts
    itself (MicroBatchExecution.runBatch, Spark 4.3). What the batch's tasks had written by then would be decided again.
    So the state may change only while a batch's job runs, or while no batch can begin: the engine takes its progress
    lock to look for data (MicroBatchExecution.constructNextBatch), and again at its very end.
    """

    def __init__(self, spark: SparkSession, query: StreamingQuery) -> None:
        jvm: Any = spark._jvm
        runtime = jvm.org.apache.spark.sql.execution.streaming.runtime
        self._active, self._ended = (
            getattr(getattr(runtime, f"{name}$"), "MODULE$") for name in ("ACTIVE", "TERMINATED")
        )
        self._engine = query._jsq.streamingQuery()
        self._state, self._lock = self._engine.state(), self._engine.awaitProgressLock()
        self._scheduler = spark.sparkContext._jsc.sc().dagScheduler()

    def ask(self) -> bool:
        """Whether the engine ends after its batch; False where this is no moment for it: to be asked again soon."""
        return self._end_after_job() if self._scheduler.activeJobs().nonEmpty() else self._end_without_data()

    def take_back(self) -> None:
        """The engine goes on, unless it has ended."""
        self._state.compareAndSet(self._ended, self._active)

    def _end_after_job(self) -> bool:
        """A job is listed from after that look at the state until before its batch is committed."""
        number = self._scheduler.numTotalJobs()
        return self._end_if(
            lambda: self._scheduler.activeJobs().nonEmpty() and self._scheduler.numTotalJobs() == number
        )

    def _end_without_data(self) -> bool:
        if not self._lock.tryLock():  # it looks for data
            return False
        try:
            return (
                not self._is_about_to_look()
                and not self._engine.status().isDataAvailable()
                and self._end_if(self._has_ended)
            )
        finally:
            self._lock.unlock()

    def _end_if(self, holds: Callable[[], bool]) -> bool:
        """Changes the state; back where it does not hold, afterwards, that this was the moment."""
        if not self._state.compareAndSet(self._active, self._ended):
            return False
        if holds():
            return True
        self.take_back()
        return False

    def _has_ended(self) -> bool:
        """Waits until the engine wants the lock that we hold: at its end, or to look for data after all."""
        deadline = time.monotonic() + _ANSWER_S
        while not self._lock.hasQueuedThreads():
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_S)
        return not self._is_about_to_look()

    def _is_about_to_look(self) -> bool:
        """At its end a trigger is no longer active."""
        return bool(self._lock.hasQueuedThreads() and self._engine.status().isTriggerActive())
