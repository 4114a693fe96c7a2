"""The metrics of the running filter, the same names and labels in every mode. No Spark here."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Literal, get_args

from prometheus_client import Counter, Gauge

from fraud_filter.checkpoint.progress import Offsets, Progress
from fraud_filter.metrics.server import Registry

_LABELS = ("mode", "query")
State = Literal["starting", "running", "waiting-for-slots", "backing-off", "stopping"]


class FilterMetrics:
    """What the filter says of itself, labelled with the execution mode and the name of the query.

    A value that is not known has no series: an absent offset is not offset 0.
    """

    def __init__(self, registry: Registry, *, mode: str, query: str, topic: str, reasons: Iterable[str] = ()) -> None:
        """`reasons`: all values of the restarts' label `reason`."""
        self._values = (mode, query)
        self._topic = topic
        self._partitions: set[int] = set()

        def gauge(name: str, text: str, *more: str) -> Gauge:
            return Gauge(f"fraud_filter_{name}", text, (*_LABELS, *more), registry=registry)

        def counter(name: str, text: str) -> Counter:
            made = Counter(f"fraud_filter_{name}", text, _LABELS, registry=registry)
            made.labels(*self._values)  # there from the start, so that the first increase shows
            return made

        self._restarts = Counter(
            "fraud_filter_restarts_total",
            "Restarts of the query from its checkpoint, by reason.",
            (*_LABELS, "reason"),
            registry=registry,
        )
        for reason in reasons:
            self._restarts.labels(*self._values, reason)

        by_partition = ("topic", "partition")
        self._up = gauge("up", "1 while the query is active, else 0.")
        self._healthy = gauge("healthy", "1 while the query is active, keeps up and reads all partitions, else 0.")
        self._commits = counter("commits_total", "Micro-batches, real-time batches or epochs committed.")
        self._rows = counter("input_records_total", "Records read from the input topic, by committed offsets.")
        self._lost = counter("lost_records_total", "Records removed from the input topic before they were read.")
        self._state = gauge("state", "1 for what the program does now, 0 for the other states.", "state")
        self._rate = gauge("input_records_per_second", "Rate of the input records of the newest commit.")
        self._phase = gauge("phase_duration_seconds", "Duration of a phase of the newest batch.", "phase")
        self._committed = gauge("committed_offset", "Next offset to read after the newest commit.", *by_partition)
        self._read = gauge("read_offset", "Offset that was read up to: committed, or told by tasks.", *by_partition)
        self._latest = gauge("latest_offset", "End offset of the input partition.", *by_partition)
        self._lag = gauge("consumer_lag_records", "End offset minus the offset that was read up to.", *by_partition)
        self._unknown = gauge("unknown_partitions", "Partitions of the input topic of which no broker tells the end.")
        self._last = gauge("last_progress_timestamp_seconds", "Time of the newest commit.")
        self._needed = gauge("task_slots_needed", "Task slots that the mode needs for good: one a partition, or 0.")
        self._granted = gauge("task_slots_granted", "Task slots that the application was granted.")
        self._up.labels(*self._values).set(0)
        self._healthy.labels(*self._values).set(0)

    def set_up(self, up: bool, healthy: bool) -> None:
        """Whether the query is active, and whether it keeps up."""
        self._up.labels(*self._values).set(up)
        self._healthy.labels(*self._values).set(up and healthy)

    def set_slots(self, needed: int, granted: int) -> None:
        """Task slots needed and granted."""
        self._needed.labels(*self._values).set(needed)
        self._granted.labels(*self._values).set(granted)

    def set_state(self, state: State) -> None:
        """What the program does."""
        for each in get_args(State):
            self._state.labels(*self._values, each).set(each == state)

    def count_restart(self, reason: str) -> None:
        """The query is about to be started again."""
        self._restarts.labels(*self._values, reason).inc()

    def count_lost(self, records: int) -> None:
        """Records are gone from the input topic that nobody has read."""
        self._lost.labels(*self._values).inc(records)

    def observe(self, progress: Progress, commits: int) -> None:
        """A newer commit was seen; `commits` is how many there were since the last one."""
        self._commits.labels(*self._values).inc(commits)
        self._rows.labels(*self._values).inc(max(progress.rows, 0))
        self._last.labels(*self._values).set(progress.at)
        if progress.rows_per_second is not None:
            self._rate.labels(*self._values).set(progress.rows_per_second)
        for phase, seconds in progress.durations_s.items():
            self._phase.labels(*self._values, phase).set(seconds)

    def set_offsets(
        self,
        committed: Offsets,
        latest: Offsets,
        readable: Offsets | None = None,
        *,
        told: Offsets | None = None,
        partitions: Collection[int] = (),
    ) -> None:
        """Committed and end offsets by partition; the lag of those partitions of which both are known.

        Ends that are not known at all (no broker answers) stay as they were; what is known of a partition that the
        topic has no longer is forgotten, and so is the end of one of which no broker tells.

        Args:
            readable: up to where records follow, where that is less than the end.
            told: up to where running tasks say that they have read.
            partitions: those of the topic, where `latest` may lack some.
        """
        read = committed | {number: max(at, committed.get(number, at)) for number, at in (told or {}).items()}
        if latest:
            here = {*latest, *partitions}
            self._unknown.labels(*self._values).set(len(here) - len(latest))
            self._forget(self._partitions - here, self._committed, self._read)
            self._forget(self._partitions - latest.keys(), self._latest, self._lag)
            self._partitions = here
            committed, read = ({n: at for n, at in each.items() if n in here} for each in (committed, read))
        self._set(self._committed, committed)
        self._set(self._read, read)
        self._set(self._latest, latest)
        ends = latest | (readable or {})
        self._set(self._lag, {n: max(0, end - read[n]) for n, end in ends.items() if n in read})

    def _set(self, gauge: Gauge, values: Offsets) -> None:
        for number, value in values.items():
            gauge.labels(*self._values, self._topic, str(number)).set(value)

    def _forget(self, numbers: Iterable[int], *gauges: Gauge) -> None:
        for number in numbers:
            for gauge in gauges:
                with suppress(KeyError):
                    gauge.remove(*self._values, self._topic, str(number))
