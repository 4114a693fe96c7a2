"""Watches a running query and keeps its metrics: progress, offsets, lag, and whether it has stalled."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from fraud_filter.config import Settings, duration_s
from fraud_filter.errors import FraudFilterError
from fraud_filter.filter_metrics import FilterMetrics
from fraud_filter.metrics import MetricsServer, Registry
from fraud_filter.offsets import find_bounds, find_partitions, open_consumer
from fraud_filter.preflight import Inputs
from fraud_filter.progress import CheckpointReader, Offsets, Progress, listener

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_log = logging.getLogger(__name__)
_LOOK_S = 1.0
#: A query is stalled when it has unread records and no commit for this long beyond its own commit interval.
_PATIENCE_S = 30.0


class Monitor:
    """Serves /metrics on `settings.metrics_port` and keeps the figures fresh by a thread of its own.

    Raises:
        UsageError: the port can't be used.
    """

    def __init__(self, settings: Settings, inputs: Inputs) -> None:
        self._settings = settings
        self._inputs = inputs
        registry = Registry()
        self._metrics = FilterMetrics(
            registry, mode=settings.mode, query=settings.query_name, topic=settings.input_topic
        )
        self._server = MetricsServer(registry, settings.metrics_host, settings.metrics_port, "metrics_port")
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._newest: Progress | None = None
        self._moved_at = time.monotonic()
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port that /metrics is served on."""
        return self._server.port

    def watch(self, spark: SparkSession, query: StreamingQuery, slots: int) -> None:
        """Begins to watch a started query."""
        self._metrics.set_slots(self._inputs.partitions if self._inputs.mode.holds_tasks else 0, slots)
        self._metrics.set_up(True, True)
        self._moved_at = time.monotonic()
        reader = None
        if self._inputs.mode.sends_progress:
            spark.streams.addListener(listener(self._report, self._settings.input_topic))
        else:
            reader = CheckpointReader(spark, self._settings.checkpoint, self._settings.input_topic)
        self._thread = threading.Thread(target=self._run, args=(query, reader), name="monitor", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the watch and frees the port; the second call does nothing."""
        if self._stop.is_set():
            return
        self._stop.set()
        if self._thread:
            self._thread.join(_LOOK_S * 5)
        self._metrics.set_up(False, False)
        self._server.stop()

    def _report(self, progress: Progress) -> None:
        with self._lock:
            before = self._newest
            if before and progress.number <= before.number:
                return
            self._newest = progress
            self._moved_at = time.monotonic()
        self._metrics.observe(progress, progress.number - before.number if before else 1)

    def _run(self, query: StreamingQuery, reader: CheckpointReader | None) -> None:
        with open_consumer(self._settings) as consumer:
            while not self._stop.wait(_LOOK_S):
                try:
                    self._look(query, reader, consumer)
                except FraudFilterError as error:
                    _log.warning("event=monitor_failed query=%s error=%s", self._settings.query_name, error)
                except Exception as error:  # Java may go away between two looks: the supervisor tells that
                    _log.debug("event=monitor_failed query=%s error=%r", self._settings.query_name, error)

    def _look(self, query: StreamingQuery, reader: CheckpointReader | None, consumer: Any) -> None:
        if reader is not None:
            newest = reader.newest()
            if newest:
                self._report(newest)
        committed = self._newest.end if self._newest else {}
        latest = self._latest(consumer) if self._settings.source == "kafka" else {}
        self._metrics.set_offsets(committed, latest)
        self._metrics.set_up(bool(query.isActive), not self._stalled(committed, latest))

    def _latest(self, consumer: Any) -> Offsets:
        topic = self._settings.input_topic
        partitions = find_partitions(consumer, self._settings, ["input_topic"])[topic]
        return {number: end for number, (_, end) in find_bounds(consumer, self._settings, topic, partitions).items()}

    def _stalled(self, committed: Offsets, latest: Offsets) -> bool:
        behind = any(end > committed.get(number, 0) for number, end in latest.items())
        return behind and time.monotonic() - self._moved_at > _commit_interval_s(self._settings) + _PATIENCE_S


def _commit_interval_s(settings: Settings) -> float:
    intervals = {
        "micro-batch": duration_s(settings.micro_batch_interval),
        "async-progress": duration_s(settings.micro_batch_interval) + settings.async_progress_interval_ms / 1000,
        "continuous": duration_s(settings.continuous_interval),
        "real-time": duration_s(settings.real_time_duration),
    }
    return intervals[settings.mode]
