"""Keeps the filter's metrics, over all restarts, and has the running query judged each second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from pyroaring import BitMap64

from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.checkpoint.notes import Loss
from fraud_filter.checkpoint.progress import CheckpointReader, EventReader, Offsets, Progress, ProgressReader
from fraud_filter.config import Settings
from fraud_filter.metrics.catalogue import DIFFERS, LOST_RECORDS
from fraud_filter.metrics.filter_metrics import (
    CertificateMetrics,
    DiskMetrics,
    ExecutorMetrics,
    FilterMetrics,
    State,
)
from fraud_filter.metrics.server import MetricsServer, Registry
from fraud_filter.modes import Mode
from fraud_filter.monitor.health import Condition, Streak, judge_alive, judge_ready
from fraud_filter.monitor.input_watch import Removals, Seen, Waits, watch_input
from fraud_filter.monitor.pulse import Pulse, PulseReader
from fraud_filter.monitor.watchdog import Kind, Verdict, Watchdog
from fraud_filter.query.preflight import Inputs
from fraud_filter.records import decisions_between
from fraud_filter.spark.internals import TaskReads
from fraud_filter.text.logs import get_logger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_log = get_logger(__name__)
_LOOK_S = 1.0
#: Of a core's time that looks take at most: with 1,000 partitions they come somewhat more seldom.
_SHARE = 0.05
_REPEAT_S = 60.0  # a trouble that lasts is told again
#: Executors tell what their tasks have read each spark.executor.heartbeatInterval, this or less.
_HEARTBEAT_S = 10.0


@dataclass(frozen=True)
class StartPosition:
    """Where a query was started: the id of its input topic, its offsets by partition, and its checkpoint's files.

    `watermark_ms`: that of its state, where the query has to know it. `writer`: the generation of what it writes.
    `undecided`: the first offset by partition that is decided; what it reads before that is for its state.
    """

    topic_id: str
    at: Offsets
    files: CheckpointFiles
    watermark_ms: int = 0
    writer: int = 0
    undecided: Offsets = field(default_factory=dict)

    @property
    def for_state(self) -> BitMap64:
        """The payments that are read for the state alone, by `decision_id`."""
        return decisions_between(self.at, self.undecided)


@dataclass
class _Watch:
    """One query run under watch; `alarm` is called once, when it must be started again."""

    pulse: PulseReader
    watchdog: Watchdog
    alarm: Callable[[Verdict], None]
    position: StartPosition
    raised: bool = False


class Monitor:
    """Serves /metrics, /readyz and /healthz on `settings.metrics_port`, and keeps them fresh by a thread of its own.

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
        CertificateMetrics(registry, settings)
        DiskMetrics(registry, settings.checkpoint_directory)
        #: Query runs that failed one after the other.
        self.streak = Streak()
        self._condition = Condition(settings.mode, settings.query_name, looked_at=time.monotonic())
        pages = {"/readyz": self._readyz, "/healthz": self._healthz}
        self._server = MetricsServer(registry, settings.metrics_host, settings.metrics_port, "metrics_port", pages)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._newest: Progress | None = None
        self._watch: _Watch | None = None
        self._stands_by = False
        #: The kind of trouble that was logged last, and when.
        self._logged: tuple[Kind, float] = ("", 0.0)
        self._removals = Removals(settings)
        self._topic_id = ""
        self._waits = Waits()
        #: Whether a query was started before, so that its checkpoint can't be empty.
        self.has_started = False
        #: The ends that were last seen of a topic's partitions, by its id.
        self.ends: dict[str, Offsets] = {}
        #: How many partitions the input topic had at the last look; 0 before the first.
        self.partitions = 0
        self._thread = threading.Thread(target=self._run, name="monitor", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that /metrics is served on."""
        return self._server.port

    @property
    def committed(self) -> Offsets:
        """The input's offsets at the newest commit that was seen; empty before the first."""
        return self._newest.end if self._newest else {}

    def set_state(self, state: State) -> None:
        """What the program does; only a running query is up."""
        self.metrics.set_state(state)
        if state != "running":
            self._set_trouble(False, Verdict())
            self._condition.moves = False
        if state == "standby":
            self.streak.start()
        self._condition.state = state

    def set_differs(self, differs: bool) -> None:
        """Whether we are a standby with other rules or settings than the active filter's."""
        self.metrics.of(DIFFERS).set(differs)
        self._condition.differs = differs

    def stand_by(self) -> None:
        """Another filter works on the checkpoint: until a query is watched nothing is told of the input's offsets.

        Else what is summed over all filters would count payments twice, and lag that another one works off.
        """
        with self._lock:
            self._newest, self._stands_by = None, True

    def count_lost(self, losses: list[Loss]) -> None:
        """Losses that were noted: each of them counts once."""
        self.metrics.of(LOST_RECORDS).inc(self._removals.count(losses))

    def watch(
        self,
        spark: SparkSession,
        query: StreamingQuery,
        inputs: Inputs,
        position: StartPosition,
        alarm: Callable[[Verdict], None],
        *,
        gives_way: bool,
    ) -> None:
        """Begins to watch a query that was just started over `inputs`, at `position`; `gives_way` is `Watchdog`'s."""
        self.has_started = True
        self.streak.start()
        settings, mode = self._settings, inputs.mode
        watchdog = Watchdog(
            partitions=inputs.partitions,
            state_partitions=inputs.state_partitions,
            mode=mode,
            patience_s=settings.stall_timeout_s,
            answer_s=settings.hang_timeout_s,
            commit_s=mode.commit_interval_s(settings),
            heartbeat_s=_HEARTBEAT_S if mode.late_commits else None,
            now=time.monotonic(),
            gives_way=gives_way,
        )
        with self._lock:
            if self._newest and position.topic_id != self._topic_id:  # offsets of a former topic say nothing any more
                self._newest = replace(self._newest, end=dict(position.at))
            self._topic_id = position.topic_id
        reader = self._reader(query, mode, position)  # asks the checkpoint: not while others wait for the lock
        with self._lock:
            chore = partial(self._removals.note, position.files)
            reads = TaskReads(spark, query) if mode.late_commits else None
            pulse = PulseReader(spark, reader, self._report, chore, reads).start()
            self._watch, self._stands_by = _Watch(pulse, watchdog, alarm, position), False
        self.set_state("running")
        self._set_trouble(True, Verdict())

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
        self._thread.join(_LOOK_S * 5)
        self._server.stop()

    def _reader(self, query: StreamingQuery, mode: Mode, position: StartPosition) -> ProgressReader:
        topic = self._settings.input_topic
        if mode.sends_progress:
            return EventReader(query, topic, self._newest)
        return CheckpointReader(position.files, topic, self._newest, position.at)

    def _report(self, progress: Progress) -> None:
        with self._lock:
            before = self._newest
            if before and progress.number <= before.number:
                return
            self._newest = progress
        self.streak.commit(progress.end)
        self._condition.last_commit_at = progress.at
        self.metrics.observe(progress, progress.number - before.number if before else 1)

    def _run(self) -> None:
        pause_s = _LOOK_S
        with watch_input(self._settings) as topic:
            while not self._stop.wait(pause_s):
                began = time.thread_time()  # what other threads do meanwhile is no part of it
                try:
                    committed = self.committed
                    self._look(committed, topic.look(committed))
                    self._condition.looked_at = time.monotonic()
                except Exception:
                    _log.exception("monitor_failed", query=self._settings.query_name)
                pause_s = max(_LOOK_S, (time.thread_time() - began) / _SHARE)

    def _look(self, committed: Offsets, seen: Seen | None) -> None:
        self._set_offsets(committed, seen)
        if seen:
            self.partitions = len(seen.partitions)
        if seen and seen.topic_id:
            self.ends[seen.topic_id] = self.ends.get(seen.topic_id, {}) | seen.latest
        with self._lock:  # no alarm, and no word of a running query, once `unwatch` has returned
            if not self._watch:
                return
            position = self._watch.position
            if seen and seen.topic_id and position.topic_id and seen.topic_id != position.topic_id:
                self._give_up(self._watch, seen)
                return
            if seen:
                reached = {number: max(at, committed.get(number, 0)) for number, at in position.at.items()}
                spans = {number: (bounds.low, bounds.end) for number, bounds in seen.bounds.items()}
                self.metrics.of(LOST_RECORDS).inc(self._removals.look(seen.topic_id, committed | reached, spans))
            self._judge(self._watch, committed, seen)

    def _give_up(self, watch: _Watch, seen: Seen) -> None:
        trouble = f"the topic {self._settings.input_topic!r} was recreated: its id is {seen.topic_id}"
        verdict = Verdict(trouble, "topic-recreated", "topic-recreated")
        self._set_trouble(True, verdict)
        self._log_trouble(verdict)
        self._raise(watch, verdict)

    def _set_offsets(self, committed: Offsets, seen: Seen | None) -> None:
        with self._lock:
            stands_by, pulse = self._stands_by, self._watch.pulse.newest if self._watch else None
        if stands_by:
            self.metrics.forget_offsets()
            self._condition.lag_records = None
            self._waits, self._condition.waits = Waits(), ""
            return
        now = time.time()
        self._waits.look(seen, now)
        self._condition.waits = self._waits.trouble(now, self._settings.stall_timeout_s)
        if seen:
            held = {number: bounds.held for number, bounds in seen.bounds.items()}
            self.metrics.set_held(held, self._waits.held)
        tasks_read, seen = pulse.read if pulse else {}, seen or Seen("", frozenset(), {}, {})
        lag = self.metrics.set_offsets(
            committed, seen.latest, seen.readable, tasks_read=tasks_read, partitions=seen.partitions
        )
        if lag:
            self._condition.lag_records = sum(lag.values())

    def _set_trouble(self, up: bool, verdict: Verdict) -> None:
        self.metrics.set_up(up, up and not verdict.trouble)
        self._condition.trouble = verdict

    def _readyz(self) -> tuple[bool, dict[str, object]]:
        verdict = judge_ready(self._condition, self.streak, time.time())
        return verdict.healthy, asdict(verdict)

    def _healthz(self) -> tuple[bool, dict[str, object]]:
        verdict = judge_alive(self._condition, self.streak, time.monotonic())
        return verdict.healthy, {"healthy": verdict.healthy, "line": verdict.line}

    def _judge(self, watch: _Watch, committed: Offsets, seen: Seen | None) -> None:
        pulse = watch.pulse.newest
        latest, count = (seen.readable, len(seen.partitions)) if seen else (None, 0)
        verdict = watch.watchdog.look(time.monotonic(), committed, latest, pulse, count)
        if pulse:
            self._executors.set(pulse.executors)
            self.metrics.set_slots(watch.watchdog.slots_needed, pulse.slots)
        self._condition.moves = self._condition.moves or moves(watch.position.at, committed, seen, pulse)
        self._set_trouble(True, verdict)
        waits = self._condition.waits
        self._log_trouble(verdict if verdict.trouble or not waits else Verdict(waits, kind="waits"))
        self._raise(watch, verdict)

    def _raise(self, watch: _Watch, verdict: Verdict) -> None:
        if verdict.remedy and not watch.raised:
            watch.raised = True
            watch.alarm(verdict)

    def _log_trouble(self, verdict: Verdict) -> None:
        kind, at = self._logged
        if verdict.trouble and (verdict.kind != kind or time.monotonic() - at > _REPEAT_S):
            _log.warning("unhealthy", query=self._settings.query_name, trouble=verdict.trouble)
            self._logged = (verdict.kind, time.monotonic())
        elif not verdict.trouble and kind:
            _log.info("healthy", query=self._settings.query_name)
            self._logged = ("", 0.0)


def moves(at: Offsets, committed: Offsets, seen: Seen | None, pulse: Pulse | None) -> bool:
    """Whether a query that started `at` these offsets has read something, or nothing waits for it."""
    read = pulse.read if pulse else {}
    if any(max(committed.get(number, 0), read.get(number, 0)) > start for number, start in at.items()):
        return True
    return seen is not None and all(end <= at[number] for number, end in seen.readable.items() if number in at)
