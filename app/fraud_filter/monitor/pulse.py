"""What a running query says of itself each second, asked by a thread that may hang when Java does.

How far the running tasks of a batch have read they tell with their executors' heartbeats. Real-time mode commits at a
batch's end only, after minutes. Each of its tasks reads one partition in order, from where the batch began, and counts
the records that it takes (Spark's SQL metric "number of output rows" of the scan; Spark guide, "Web UI", SQL metrics).
Beginning plus count is at most where the task stands: offsets without a record for the reader, such as marks of
transactions, count as unread until the commit. Spark serves these counts by task on no page; they are taken from the
listener that its pages are made from.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fraud_filter.checkpoint.progress import Offsets, Progress, ProgressReader
from fraud_filter.spark.executors import Executor, read_executors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

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
    """Asks for one query of real-time mode; for one thread."""

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


_log = logging.getLogger(__name__)

_LOOK_S = 1.0

#: How long the end of a query waits for the last look.
_LAST_LOOK_S = 1.0


@dataclass(frozen=True)
class Pulse:
    """`at`: when Java answered (seconds of the monotonic clock); `executors`: those that live; `records` changes while
    tasks read or write records, also within a batch: what it is made of is Spark's matter; `read` is the next offset
    that running tasks will read, by partition, where they are asked."""

    at: float
    executors: tuple[Executor, ...]
    records: Hashable
    read: Offsets = field(default_factory=dict)

    @property
    def slots(self) -> int:
        """Task slots granted."""
        return sum(executor.cores for executor in self.executors)


class PulseReader:
    """Asks Java for the pulse until `stop`, or until Java is gone."""

    def __init__(
        self,
        spark: SparkSession,
        reader: ProgressReader,
        report: Callable[[Progress], None],
        chore: Callable[[], None] = lambda: None,
        reads: TaskReads | None = None,
    ) -> None:
        """`report` is told the progress that `reader` finds; `chore` is done at each look: it may ask Java; `reads`
        asks running tasks."""
        self._chore = chore
        self._reads = reads
        self._read: Offsets = {}
        self.newest: Pulse | None = None
        self._spark = spark
        self._reader = reader
        self._report = report
        self._records: Hashable = ()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)

    def start(self) -> PulseReader:
        """Begins."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Ends it, after a last look; a thread that hangs in Java is left to Java's end."""
        self._stop.set()
        self._thread.join(_LAST_LOOK_S)

    def _run(self) -> None:
        from py4j.protocol import Py4JNetworkError

        is_last = False
        while not is_last:
            is_last = self._stop.wait(_LOOK_S)
            try:
                self._look()
            except (Py4JNetworkError, OSError):
                return  # Java is gone: the supervisor sees that too
            except Exception as error:
                _log.debug("event=pulse_failed error=%r", error)

    def _look(self) -> None:
        from py4j.protocol import Py4JError, Py4JNetworkError

        self._chore()
        newest = self._reader.newest()
        if newest:
            self._report(newest)
        executors = read_executors(self._spark)
        try:
            self._records = _records(self._spark)
            if self._reads:
                self._read = self._reads.look()
        except Py4JError as error:  # Java has answered, if only with a refusal
            _log.debug("event=pulse_failed error=%r", error)
            if isinstance(error, Py4JNetworkError):
                raise
        self.newest = Pulse(time.monotonic(), executors, self._records, self._read)


def _records(spark: SparkSession) -> Hashable:
    """Records read and written by the running tasks, and the newest plan's metrics; they come with heartbeats (10 s).

    Measured: by stage nothing is told in continuous and real-time mode, hence the plan is asked as well.
    """
    store: Any = spark.sparkContext._jsc.sc().statusStore()
    stages = store.activeStages()
    counts = tuple(
        (stage.stageId(), stage.attemptId(), stage.inputRecords(), stage.outputRecords())
        for stage in (stages.apply(index) for index in range(int(stages.size())))
    )
    session: Any = spark._jsparkSession
    plans = session.sharedState().statusStore()
    count = int(plans.executionsCount())
    newest = plans.executionsList(count - 1, 1) if count else None
    metrics = str(plans.executionMetrics(newest.head().executionId()).toString()) if newest is not None else ""
    return (*(each for each in counts if any(each[2:])), metrics)
