"""Spark's private state, as of Spark 4.3: what no public interface tells or does. Another version may break it.

`BatchEnd` has an engine of batches end after the batch that it is in. `TaskReads` tells how far the tasks of a batch
have read. `await_tasks` waits for the tasks of a query that was stopped. `task_scheduler` knows first of an executor
that was lost. `tests/embedded/test_spark_internals.py` checks that the pinned Spark still has what they use.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

#: The next offset by partition.
Offsets = dict[int, int]
#: An engine that may end does so within milliseconds; one that does not answer for so long is another's business.
_ANSWER_S = 10.0
_LOOK_S = 0.001
_TASKS_LOOK_S = 0.01


def await_tasks(spark: SparkSession, seconds: float) -> None:
    """Waits until no task runs, for `seconds` at most.

    A query that was stopped does not wait for its tasks: executors end them when they hear of it, and they write on
    until then (TaskSchedulerImpl.cancelTasks). Tasks on executors that were lost do not count.
    """
    until = time.monotonic() + seconds
    while count_tasks(spark) and time.monotonic() < until:
        time.sleep(_TASKS_LOOK_S)


def count_tasks(spark: SparkSession) -> int:
    """How many tasks run on executors that are there."""
    return sum(map(int, _items(task_scheduler(spark).runningTasksByExecutors().values().toSeq())))


def task_scheduler(spark: SparkSession) -> Any:
    """What gives tasks to executors, and hears first that one was lost (TaskSchedulerImpl)."""
    context: Any = spark.sparkContext._jsc.sc()
    return context.taskScheduler()


class BatchEnd:
    """Has an engine of batches end by itself, after the batch that it is in.

    It sets the state of a query's engine to TERMINATED, as its `stop` does; that interrupts the batch as well.

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


_SCAN = "RealTimeStreamScanExec"
_ROWS = "numOutputRows"


@dataclass
class _Batch:
    """The batch that runs: its execution's id, the partition and the first offset of each task, and their counts in
    Java, which Spark changes in place; None before a first heartbeat with records."""

    execution: int
    partitions: list[int]
    starts: list[int]
    metric: int
    stages: list[Any]
    counts: Any = None


class TaskReads:
    """How far the running tasks of a query in real-time mode have read, as their executors' heartbeats say.

    Real-time mode commits at a batch's end only, after minutes. Each of its tasks reads one partition in order, from
    where the batch began, and counts the records that it takes (Spark's SQL metric "number of output rows" of the scan;
    Spark guide, "Web UI", SQL metrics). Beginning plus count is at most where the task stands: offsets without a record
    for the reader, such as marks of transactions, count as unread until the commit. No page of Spark has these counts
    by task; they are taken from the listener that its pages are made from. For one thread.
    """

    def __init__(self, spark: SparkSession, query: StreamingQuery) -> None:
        self._spark = spark
        self._query: Any = query
        jvm: Any = spark._jvm
        self._arrays = jvm.java.util.Arrays  # Py4J asks Java for each part of such a name, which then searches all jars
        self._batch: _Batch | None = None
        self._read: Offsets = {}

    def look(self) -> Offsets:
        """The next offset to read by partition, as of the last heartbeat; what was known last between two batches.

        Raises:
            Py4JError: Java does not answer, or Spark is another than the one that this was written for.
        """
        plans: Any = self._spark._jsparkSession.sharedState().statusStore()
        count = int(plans.executionsCount())
        if not count:
            return self._read
        newest = plans.executionsList(count - 1, 1).head()
        if not self._batch or self._batch.execution != newest.executionId():
            # A plan that is not yet made would be made here: its job runs when it is.
            if newest.completionTime().isDefined() or newest.stages().isEmpty():
                return self._read
            self._batch = self._open(plans, newest)
        if self._batch:
            self._read = self._told(self._batch)
        return self._read

    def _open(self, plans: Any, newest: Any) -> _Batch | None:
        execution = self._query._jsq.streamingQuery().lastExecution()
        leaves = _items(execution.executedPlan().collectLeaves()) if execution is not None else []
        for scan in leaves:
            if scan.getClass().getSimpleName() == _SCAN:
                ranges = [each.offsetRange() for each in _items(scan.inputPartitions())]
                stages = newest.stages().toSeq()
                return _Batch(
                    newest.executionId(),
                    [int(each.partition()) for each in ranges],
                    [int(each.fromOffset()) for each in ranges],
                    int(scan.metrics().apply(_ROWS).id()),
                    [_stage_metrics(plans, number) for number in _items(stages)],
                )
        return None

    def _told(self, batch: _Batch) -> Offsets:
        if batch.counts is None:
            batch.counts = _find_counts(batch)
        counts = (
            json.loads(self._arrays.toString(batch.counts)) if batch.counts is not None else [0] * len(batch.starts)
        )
        told = zip(batch.partitions, batch.starts, counts, strict=True)
        return {partition: start + max(count, 0) for partition, start, count in told}


def _stage_metrics(plans: Any, stage: int) -> Any:
    listener = plans.listener().get()
    field = listener.getClass().getDeclaredField("stageMetrics")
    field.setAccessible(True)
    return field.get(listener).get(stage)


def _find_counts(batch: _Batch) -> Any:
    for stage in batch.stages:
        for values in _items(stage.metricValues()) if stage is not None else []:
            if values._1() == batch.metric:
                return values._2()
    return None


def _items(seq: Any) -> list[Any]:
    """What a sequence of Scala's holds."""
    return [seq.apply(index) for index in range(int(seq.size()))]
