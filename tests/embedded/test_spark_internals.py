"""The private state of the pinned Spark that `spark/internals.py` uses: run this first on another version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fraud_filter.spark.internals import BatchEnd, await_tasks, count_tasks
from running import until

SQL = "org.apache.spark.sql"
ENGINE = f"{SQL}.execution.streaming.runtime"
#: By class: its methods, and in brackets its private fields.
USED = {
    f"{ENGINE}.StreamingQueryWrapper": ["streamingQuery"],
    f"{ENGINE}.MicroBatchExecution": ["state", "awaitProgressLock", "status", "lastExecution"],
    f"{ENGINE}.ACTIVE$": ["[MODULE$]"],
    f"{ENGINE}.TERMINATED$": ["[MODULE$]"],
    f"{SQL}.streaming.StreamingQueryStatus": ["isDataAvailable", "isTriggerActive"],
    f"{SQL}.execution.datasources.v2.RealTimeStreamScanExec": ["inputPartitions", "metrics"],
    f"{SQL}.classic.SparkSession": ["sharedState"],
    f"{SQL}.internal.SharedState": ["statusStore"],
    f"{SQL}.execution.ui.SQLAppStatusStore": ["executionsCount", "executionsList", "listener"],
    f"{SQL}.execution.ui.SQLExecutionUIData": ["executionId", "completionTime", "stages"],
    f"{SQL}.execution.ui.SQLAppStatusListener": ["[stageMetrics]"],
    f"{SQL}.execution.ui.LiveStageMetrics": ["metricValues"],
    "org.apache.spark.SparkContext": ["dagScheduler", "taskScheduler"],
    "org.apache.spark.scheduler.TaskSchedulerImpl": ["runningTasksByExecutors", "isExecutorAlive"],
    "org.apache.spark.scheduler.DAGScheduler": ["activeJobs", "numTotalJobs"],
}


@pytest.mark.parametrize("name", USED)
def test_spark_has_it(spark: Any, name: str) -> None:
    loader = spark._jsparkSession.sharedState().jarClassLoader()
    loaded = spark._jvm.java.lang.Class.forName(name, False, loader)
    methods = {method.getName() for method in loaded.getMethods()}
    fields = {f"[{field.getName()}]" for field in loaded.getDeclaredFields()}
    assert [member for member in USED[name] if member not in methods | fields] == []


# -- an engine of batches that is asked to end has committed all that it has begun, whenever it is asked


_TIMES = 8


def newest(checkpoint: Path, log: str) -> int:
    return max((int(path.name) for path in (checkpoint / log).glob("[0-9]*")), default=-1)


def start(spark: Any, checkpoint: Path, rate: int) -> Any:
    """Batches of a query, as fast as they come; `rate` is in rows per second."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", rate).load()
    written = rows.selectExpr("value", "hash(value) AS other").writeStream.format("noop")
    query = written.trigger(processingTime="0 seconds").option("checkpointLocation", str(checkpoint)).start()
    until(lambda: newest(checkpoint, "commits") >= 1, "batches", 120)
    return query


@pytest.mark.timeout(600)
@pytest.mark.parametrize("rate", [1000, 1], ids=["each batch has data", "most looks find none"])
def test_no_batch_is_cut_off_in_its_middle(spark: Any, tmp_path: Path, rate: int) -> None:
    """A batch that was planned and is not committed would be decided again by the next filter."""
    for number in range(_TIMES):
        checkpoint = tmp_path / str(number)
        query = start(spark, checkpoint, rate)
        until(BatchEnd(spark, query).ask, "a moment at which a batch may be the last one", 60)
        assert query.awaitTermination(60)
        assert newest(checkpoint, "offsets") == newest(checkpoint, "commits")


#: Some seconds for a row, in which nothing looks whether the task is to end.
_LONG = "aggregate(sequence(1, 3000), value, (a, x) -> a + aggregate(sequence(1, 20000), 0L, (b, y) -> b + x * y))"


def test_tasks_of_a_stopped_query_are_waited_for(spark: Any, tmp_path: Path) -> None:
    rows = spark.readStream.format("rate").option("rowsPerSecond", 4).load().selectExpr(f"{_LONG} AS one")
    query = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    seen: list[int] = []

    def runs_long() -> bool:
        seen.append(count_tasks(spark))
        return len(seen) > 10 and all(seen[-10:])

    until(runs_long, "a task that takes long", 60)
    query.stop()
    assert count_tasks(spark) > 0
    await_tasks(spark, 60)
    assert count_tasks(spark) == 0
