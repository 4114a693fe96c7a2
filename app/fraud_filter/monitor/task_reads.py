"""How far the running tasks of a batch have read, as they tell with their executors' heartbeats.

Real-time mode commits at a batch's end only, after minutes. Each of its tasks reads one partition in order, from where
the batch began, and counts the records that it takes (Spark's SQL metric "number of output rows" of the scan; Spark
guide, "Web UI", SQL metrics). Beginning plus count is at most where the task stands: offsets without a record for the
reader, such as marks of transactions, count as unread until the commit. Spark serves these counts by task on no page;
they are taken from the listener that its pages are made from.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fraud_filter.checkpoint.progress import Offsets

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
