"""The metrics of the executors, as the driver knows them. No Spark here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from fraud_filter.metrics.server import Registry
from fraud_filter.spark.executors import Executor

_PREFIX = "fraud_filter_executor_"


class ExecutorMetrics:
    """What the live executors said last, by executor; one that is gone has no series any more."""

    def __init__(self, registry: Registry, *, mode: str, query: str) -> None:
        self._labels = {"mode": mode, "query": query}
        self._executors: Sequence[Executor] = ()
        registry.register(self)  # a collector by its `collect`

    def set(self, executors: Sequence[Executor]) -> None:
        """The executors of now."""
        self._executors = executors

    def collect(self) -> Iterator[Metric]:
        """Called by the registry at each scrape."""
        labels = (*self._labels, "executor")
        cores = GaugeMetricFamily(f"{_PREFIX}cores", "Task slots of the executor.", labels=labels)
        active = GaugeMetricFamily(f"{_PREFIX}active_tasks", "Tasks that run on the executor.", labels=labels)
        done = CounterMetricFamily(
            f"{_PREFIX}tasks", "Tasks that ended on the executor, by how they did.", labels=(*labels, "outcome")
        )
        collections = CounterMetricFamily(
            f"{_PREFIX}gc_seconds", "Time that the executor's garbage collections took.", labels=labels
        )
        peaks = GaugeMetricFamily(
            f"{_PREFIX}peak_memory_bytes", "Most memory that the executor has used.", labels=(*labels, "area")
        )
        for executor in self._executors:
            values = (*self._labels.values(), executor.name)
            cores.add_metric(values, executor.cores)
            active.add_metric(values, executor.active_tasks)
            done.add_metric((*values, "completed"), executor.completed_tasks)
            done.add_metric((*values, "failed"), executor.failed_tasks)
            collections.add_metric(values, executor.gc_s)
            for area, held in executor.peak_bytes.items():
                peaks.add_metric((*values, area), held)
        return iter((cores, active, done, collections, peaks))
