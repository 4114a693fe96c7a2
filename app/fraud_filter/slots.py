"""The task slots that an application has now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def count_slots(spark: SparkSession) -> int:
    """The cores of all live executors; of the driver in local mode.

    `defaultParallelism` will not do: on a cluster it says 2 when there are fewer (CoarseGrainedSchedulerBackend).
    """
    context: Any = spark.sparkContext._jsc.sc()
    executors = context.statusStore().executorList(True)
    return sum(int(executors.apply(index).totalCores()) for index in range(int(executors.size())))
