"""Keeps the filter's metrics, over all restarts, and has the running query judged each second."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fraud_filter.config import Settings, duration_s
from fraud_filter.errors import FraudFilterError
from fraud_filter.executor_metrics import ExecutorMetrics
from fraud_filter.filter_metrics import FilterMetrics, State
from fraud_filter.metrics import MetricsServer, Registry
from fraud_filter.modes import Mode
from fraud_filter.offsets import find_input_bounds, first_offsets, open_consumer
from fraud_filter.preflight import Inputs
from fraud_filter.progress import CheckpointReader, EventReader, Offsets, Progress, ProgressReader
from fraud_filter.pulse import PulseReader
from fraud_filter.watchdog import Verdict, Watchdog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_log = logging.getLogger(__name__)
_LOOK_S = 1.0
#: A trouble that lasts is told again.
_REPEAT_S = 60.0
#: Executors tell what their tasks have read each spark.executor.heartbeatInterval.
_HEARTBEAT_S = 10.0


@dataclass
class _Watch:
    """One life of the query under watch; `alarm` is called once, when it must be started again."""

    pulse: PulseReader
    watchdog: Watchdog
    alarm: Callable[[Verdict], None]
    raised: bool = False


class Monitor:
    """Serves /metrics on `settings.metrics_port` and keeps the figures fresh by a thread of its own.

    With `settings.monitoring` off it does nothing.

    Raises:
        UsageError: the port can't be used.
    """

    def __init__(self, settings: Settings, reasons: tuple[str, ...]) -> None:
        """`reasons`: why a query may be restarted."""
        self._settings = settings
        registry = Registry()
        self.metrics = FilterMetrics(
            registry, mode=settings.mode, query=settings.query_name, topic=settings.input_topic, reasons=reasons
        )
        self._executors = ExecutorMetrics(registry, mode=settings.mode, query=settings.query_name)
        self._server = (
            MetricsServer(registry, settings.metrics_host, settings.metrics_port, "metrics_port")
            if settings.monitoring
            else None
        )
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._newest: Progress | None = None
        self._watch: _Watch | None = None
        self._told: tuple[str, float] = ("", 0.0)
        self._lost: dict[tuple[int, int], int] = {}
        self._thread = threading.Thread(target=self._run, name="monitor", daemon=True)
        if settings.monitoring:
            self._thread.start()

    @property
    def port(self) -> int:
        """The port that /metrics is served on; 0 where it is not."""
        return self._server.port if self._server else 0

    @property
    def committed(self) -> Offsets:
        """The input's offsets at the newest commit that was seen; empty before the first."""
        return self._newest.end if self._newest else {}

    def set_state(self, state: State) -> None:
        """What the program does; only a running query is up."""
        self.metrics.set_state(state)
        if state != "running":
            self.metrics.set_up(False, False)

    def count_lost(self, spans: Mapping[int, tuple[int, int]]) -> None:
        """Offsets that are gone, by partition, from the first to before the second: each of them counts once."""
        for number, (start, end) in spans.items():
            before = self._lost.get((number, start), start)
            self.metrics.count_lost(max(end - before, 0))
            self._lost[number, start] = max(end, before)

    def watch(
        self, spark: SparkSession, query: StreamingQuery, inputs: Inputs, alarm: Callable[[Verdict], None]
    ) -> None:
        """Begins to watch a query that was just started over `inputs`."""
        settings, mode = self._settings, inputs.mode
        if not settings.monitoring:
            self.set_state("running")
            return
        watchdog = Watchdog(
            partitions=inputs.partitions,
            mode=mode,
            patience_s=settings.stall_timeout_s,
            commit_s=_commit_interval_s(settings),
            heartbeat_s=_HEARTBEAT_S if mode.name == "real-time" else None,
            now=time.monotonic(),
        )
        reader = self._reader(spark, query, mode)  # asks Kafka and the checkpoint: not while others wait for the lock
        with self._lock:
            self._watch = _Watch(PulseReader(spark, reader, self._report).start(), watchdog, alarm)
        self.set_state("running")
        self.metrics.set_up(True, True)

    def unwatch(self) -> None:
        """The query is about to end; it raises no more alarms."""
        with self._lock:
            watch, self._watch = self._watch, None
        self._executors.set(())
        if watch:
            watch.pulse.stop()

    def close(self) -> None:
        """Ends the watch and frees the port."""
        self._stop.set()
        self.unwatch()
        if self._server:
            self._thread.join(_LOOK_S * 5)
            self._server.stop()

    def _reader(self, spark: SparkSession, query: StreamingQuery, mode: Mode) -> ProgressReader:
        settings = self._settings
        if mode.sends_progress:
            return EventReader(query, settings.input_topic, self._newest)
        begin = None if self._newest else self._first_offsets()
        return CheckpointReader(spark, settings.checkpoint, settings.input_topic, self._newest, begin)

    def _report(self, progress: Progress) -> None:
        with self._lock:
            before = self._newest
            if before and progress.number <= before.number:
                return
            self._newest = progress
        self.metrics.observe(progress, progress.number - before.number if before else 1)

    def _run(self) -> None:
        with open_consumer(self._settings) as consumer:
            while not self._stop.wait(_LOOK_S):
                try:
                    self._look(self._latest(consumer))
                except Exception:
                    _log.exception("event=monitor_failed query=%s", self._settings.query_name)

    def _latest(self, consumer: Any) -> Offsets | None:
        """The ends of the input's partitions; None while no broker answers."""
        if self._settings.source != "kafka":
            return {}
        try:
            bounds = find_input_bounds(consumer, self._settings)
        except FraudFilterError as error:
            _log.warning("event=monitor_failed query=%s error=%s", self._settings.query_name, error)
            return None
        return {number: end for number, (_, end) in bounds.items()}

    def _first_offsets(self) -> Offsets | None:
        """Where the query begins on an empty checkpoint; None while no broker answers."""
        settings = self._settings
        if settings.source != "kafka":
            return None
        try:
            with open_consumer(settings) as consumer:
                return first_offsets(settings, find_input_bounds(consumer, settings))
        except FraudFilterError:
            return None

    def _look(self, latest: Offsets | None) -> None:
        committed = self.committed
        self.metrics.set_offsets(committed, latest or {})
        with self._lock:  # no alarm, and no word of a running query, once `unwatch` has returned
            if self._watch:
                self._judge(self._watch, committed, latest)

    def _judge(self, watch: _Watch, committed: Offsets, latest: Offsets | None) -> None:
        pulse = watch.pulse.newest
        verdict = watch.watchdog.look(time.monotonic(), committed, latest, pulse)
        if pulse:
            self._executors.set(pulse.executors)
            self.metrics.set_slots(watch.watchdog.slots_needed, pulse.slots)
        self.metrics.set_up(True, not verdict.trouble)
        self._tell(verdict.trouble)
        if verdict.remedy and not watch.raised:
            watch.raised = True
            watch.alarm(verdict)

    def _tell(self, trouble: str) -> None:
        told, at = self._told
        kind = trouble.split(" ", 2)[:2]  # its numbers change each second
        if trouble and (kind != told.split(" ", 2)[:2] or time.monotonic() - at > _REPEAT_S):
            _log.warning("event=unhealthy query=%s trouble=%r", self._settings.query_name, trouble)
            self._told = (trouble, time.monotonic())
        elif not trouble and told:
            _log.info("event=healthy query=%s", self._settings.query_name)
            self._told = ("", 0.0)


def _commit_interval_s(settings: Settings) -> float:
    """How long a healthy query may show no sign of progress although it works."""
    intervals = {
        "micro-batch": duration_s(settings.micro_batch_interval),
        "async-progress": duration_s(settings.micro_batch_interval) + settings.async_progress_interval_ms / 1000,
        "continuous": duration_s(settings.continuous_interval),
        "real-time": duration_s(settings.real_time_duration),
    }
    return intervals[settings.mode]
