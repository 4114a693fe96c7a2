"""The metrics of the executors, as the driver knows them. No Spark here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import Metric

from fraud_filter.metrics import catalogue
from fraud_filter.metrics.server import Registry
from fraud_filter.spark.executors import Executor


class ExecutorMetrics:
    """What the live executors said last, by executor; one that is gone has no series any more."""

    def __init__(self, registry: Registry, *, mode: str, query: str) -> None:
        self._labels = (mode, query)
        self._executors: Sequence[Executor] = ()
        registry.register(self)  # a collector by its `collect`

    def set(self, executors: Sequence[Executor]) -> None:
        """The executors of now."""
        self._executors = executors

    def collect(self) -> Iterator[Metric]:
        """Called by the registry at each scrape."""
        by_executor = [((*self._labels, executor.name), executor) for executor in self._executors]
        yield catalogue.EXECUTOR_CORES.collected((labels, each.cores) for labels, each in by_executor)
        yield catalogue.EXECUTOR_ACTIVE_TASKS.collected((labels, each.active_tasks) for labels, each in by_executor)
        yield catalogue.EXECUTOR_TASKS.collected(
            ((*labels, outcome), count)
            for labels, each in by_executor
            for outcome, count in (("completed", each.completed_tasks), ("failed", each.failed_tasks))
        )
        yield catalogue.EXECUTOR_GC.collected((labels, each.gc_s) for labels, each in by_executor)
        yield catalogue.EXECUTOR_PEAK_MEMORY.collected(
            ((*labels, area), held) for labels, each in by_executor for area, held in each.peak_bytes.items()
        )
