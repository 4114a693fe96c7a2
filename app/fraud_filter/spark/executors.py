"""The executors that an application has now: the task slots they give, and what they tell the driver of themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Executor:
    """One live executor; in local mode the driver is one. Tasks are counted since its start.

    `peak_bytes`: the most memory it has used, by area (`heap`, `off-heap`); empty before its first heartbeat (10 s).
    """

    name: str
    cores: int
    active_tasks: int
    completed_tasks: int
    failed_tasks: int
    gc_s: float
    peak_bytes: dict[str, int]


#: Areas of memory and their names among Spark's ExecutorMetrics.
_AREAS = {"heap": "JVMHeapMemory", "off-heap": "JVMOffHeapMemory"}


def read_executors(spark: SparkSession) -> tuple[Executor, ...]:
    """All live executors (Spark guide, "Monitoring and Instrumentation", REST API: /executors).

    On a cluster Spark lists the driver with them, as one without cores.
    """
    context: Any = spark.sparkContext._jsc.sc()
    listed = context.statusStore().executorList(True)
    found = (_executor(listed.apply(index)) for index in range(int(listed.size())))
    return tuple(executor for executor in found if executor.cores)


def name_executors(spark: SparkSession) -> frozenset[str]:
    """The names of all that can be lost; in local mode there is none."""
    return frozenset(executor.name for executor in read_executors(spark) if executor.name != "driver")


def count_slots(spark: SparkSession) -> int:
    """The cores of all live executors; of the driver in local mode.

    `defaultParallelism` will not do: on a cluster it says 2 when there are fewer (CoarseGrainedSchedulerBackend).
    """
    return sum(executor.cores for executor in read_executors(spark))


def _executor(summary: Any) -> Executor:
    peaks = summary.peakMemoryMetrics()
    known = peaks.get() if peaks.isDefined() else None
    return Executor(
        name=str(summary.id()),
        cores=int(summary.totalCores()),
        active_tasks=int(summary.activeTasks()),
        completed_tasks=int(summary.completedTasks()),
        failed_tasks=int(summary.failedTasks()),
        gc_s=summary.totalGCTime() / 1000,
        peak_bytes={area: int(known.getMetricValue(name)) for area, name in _AREAS.items()} if known else {},
    )
