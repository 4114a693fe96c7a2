"""The metrics of the running filter, the same names and labels in every mode."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, get_args

from cryptography import x509
from prometheus_client import Gauge
from prometheus_client.core import Metric

from fraud_filter.checkpoint.progress import Offsets, Progress
from fraud_filter.config import Settings
from fraud_filter.metrics import catalogue
from fraud_filter.metrics.catalogue import Entry, Metrics
from fraud_filter.metrics.server import Registry
from fraud_filter.spark.executors import Executor

State = Literal["starting", "warming-up", "standby", "running", "waiting-for-slots", "backing-off", "stopping"]

#: Counters that are there from the start, so that the first increase shows.
_FROM_THE_START = (
    *(catalogue.COMMITS, catalogue.INPUT_RECORDS, catalogue.LOST_RECORDS),
    *(catalogue.SET_ASIDE, catalogue.TAKEOVERS),
)
_OFFSETS = (
    *(catalogue.COMMITTED_OFFSET, catalogue.READ_OFFSET),
    *(catalogue.LATEST_OFFSET, catalogue.CONSUMER_LAG),
)


class FilterMetrics(Metrics):
    """What the filter says of itself, labelled with the execution mode and the name of the query.

    A value that is not known has no series: an absent offset is not offset 0.
    """

    def __init__(self, registry: Registry, *, mode: str, query: str, topic: str, reasons: Iterable[str] = ()) -> None:
        """`reasons`: all values of the restarts' label `reason`."""
        super().__init__(registry, "filter", (mode, query))
        self._topic = topic
        self._partitions: set[int] = set()
        self._reported_held: set[int] = set()
        for reason in reasons:
            self.of(catalogue.RESTARTS, reason)
        for counter in _FROM_THE_START:
            self.of(counter)
        if mode in catalogue.LATE_RECORDS.modes:
            self.of(catalogue.LATE_RECORDS)
        for gauge in (catalogue.DIFFERS, catalogue.UP, catalogue.HEALTHY):
            self.of(gauge).set(0)

    def set_up(self, up: bool, healthy: bool) -> None:
        """Whether the query is active, and whether it keeps up."""
        self.of(catalogue.UP).set(up)
        self.of(catalogue.HEALTHY).set(up and healthy)

    def set_slots(self, needed: int, granted: int) -> None:
        """Task slots needed and granted."""
        self.of(catalogue.SLOTS_NEEDED).set(needed)
        self.of(catalogue.SLOTS_GRANTED).set(granted)

    def set_state(self, state: State) -> None:
        """What the program does."""
        for each in get_args(State):
            self.of(catalogue.STATE, each).set(each == state)

    def observe(self, progress: Progress, commits: int) -> None:
        """A newer commit was seen; `commits` is how many there were since the last one."""
        self.of(catalogue.COMMITS).inc(commits)
        self.of(catalogue.INPUT_RECORDS).inc(max(progress.rows, 0))
        self.of(catalogue.LAST_PROGRESS).set(progress.at)
        if progress.rows_per_second is not None:
            self.of(catalogue.INPUT_RATE).set(progress.rows_per_second)
        for phase, seconds in progress.durations_s.items():
            self.of(catalogue.PHASE_DURATION, phase).set(seconds)
        if state := progress.state:
            self.of(catalogue.VELOCITY_KEYS).set(state.keys)
            self.of(catalogue.VELOCITY_MEMORY).set(state.memory_bytes)
            self.of(catalogue.VELOCITY_DISK).set(state.disk_bytes)
            self.of(catalogue.VELOCITY_COMMIT).set(state.commit_s)
            self.of(catalogue.LATE_RECORDS).inc(state.late)

    def set_offsets(
        self,
        committed: Offsets,
        latest: Offsets,
        readable: Offsets | None = None,
        *,
        tasks_read: Offsets | None = None,
        partitions: Collection[int] = (),
    ) -> Offsets:
        """Committed and end offsets by partition; the lag of those partitions of which both are known.

        Ends that are not known at all (no broker answers) stay as they were; what is known of a partition that the
        topic has no longer is forgotten, and so is the end of one of which no broker tells.

        Args:
            readable: up to where records follow, where that is less than the end.
            tasks_read: up to where running tasks say that they have read.
            partitions: those of the topic, where `latest` may lack some.

        Returns:
            The lag by partition.
        """
        read = committed | {number: max(at, committed.get(number, at)) for number, at in (tasks_read or {}).items()}
        if latest:
            here = {*latest, *partitions}
            self.of(catalogue.UNKNOWN_PARTITIONS).set(len(here) - len(latest))
            self._forget(self._partitions - here, catalogue.COMMITTED_OFFSET, catalogue.READ_OFFSET)
            self._forget(self._partitions - latest.keys(), catalogue.LATEST_OFFSET, catalogue.CONSUMER_LAG)
            self._partitions = here
            committed, read = ({n: at for n, at in each.items() if n in here} for each in (committed, read))
        self._set(catalogue.COMMITTED_OFFSET, committed)
        self._set(catalogue.READ_OFFSET, read)
        self._set(catalogue.LATEST_OFFSET, latest)
        ends = latest | (readable or {})
        lag = {n: max(0, end - read[n]) for n, end in ends.items() if n in read}
        self._set(catalogue.CONSUMER_LAG, lag)
        return lag

    def set_held(self, held: Offsets, since: dict[int, float]) -> None:
        """How many offsets open transactions hold, by partition, and since when (seconds since 1970) where some do."""
        self._forget(self._reported_held - held.keys(), catalogue.HELD_RECORDS)
        self._forget(self._reported_held - since.keys(), catalogue.HELD_SINCE)
        self._reported_held = set(held)
        self._set(catalogue.HELD_RECORDS, held)
        self._set(catalogue.HELD_SINCE, since)

    def forget_offsets(self) -> None:
        """Takes all partitions off the page: another filter serves them."""
        self._forget(self._partitions, *_OFFSETS)
        self._partitions = set()
        self.set_held({}, {})

    def _set(self, gauge: Entry[Gauge], values: Mapping[int, float]) -> None:
        for number, value in values.items():
            self.of(gauge, self._topic, str(number)).set(value)

    def _forget(self, numbers: Iterable[int], *gauges: Entry[Gauge]) -> None:
        for number in numbers:
            for gauge in gauges:
                self.remove(gauge, self._topic, str(number))


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


def certificate_ends(file: Path) -> list[float]:
    """The end of each certificate of a file, in seconds since 1970; keys beside them are passed over.

    Raises:
        OSError: the file can't be read.
        ValueError: it holds no certificate.
    """
    return [found.not_valid_after_utc.timestamp() for found in x509.load_pem_x509_certificates(file.read_bytes())]


class CertificateMetrics:
    """The ends of the certificates that this program is given, read at each scrape: files may be renewed below it.

    Of our own certificate the first end of its chain counts; of authorities the last one: while they are exchanged the
    file holds the old and the new. A file that can't be read has no sample.
    """

    def __init__(self, registry: Registry, settings: Settings) -> None:
        """No sample where Kafka is reached without TLS."""
        tls = settings.kafka_security_protocol.endswith("SSL")
        self._files = [
            (Path(name), pick)
            for name, pick in ((settings.kafka_ssl_ca, max), (settings.kafka_ssl_certificate, min))
            if tls and name
        ]
        registry.register(self)  # a collector by its `collect`

    def collect(self) -> Iterator[Metric]:
        """Called by the registry at each scrape."""
        yield catalogue.CERTIFICATE_EXPIRY.collected(self._ends())

    def _ends(self) -> Iterator[tuple[tuple[str], float]]:
        for file, pick in self._files:
            with suppress(OSError, ValueError):
                yield (file.name,), pick(certificate_ends(file))


class DiskMetrics:
    """The size of the disk below the checkpoint and what is free on it, asked at each scrape.

    A full disk stops every mode at its next commit.

    No sample where the checkpoint is not on a local disk (its file system has a monitoring of its own), and none while
    the directory is not there.
    """

    def __init__(self, registry: Registry, checkpoint: Path | None) -> None:
        """`checkpoint`: its directory, or None."""
        self._checkpoint = checkpoint
        registry.register(self)  # a collector by its `collect`

    def collect(self) -> Iterator[Metric]:
        """Called by the registry at each scrape."""
        size: list[tuple[tuple[str, ...], float]] = []
        free: list[tuple[tuple[str, ...], float]] = []
        with suppress(OSError):
            if self._checkpoint is not None:
                found = shutil.disk_usage(self._checkpoint)
                size, free = [((), found.total)], [((), found.free)]
        yield catalogue.DISK_SIZE.collected(size)
        yield catalogue.DISK_FREE.collected(free)
