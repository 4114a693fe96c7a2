"""The metrics of the running filter, the same names and labels in every mode. No Spark here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Literal, get_args

from prometheus_client import Gauge

from fraud_filter.checkpoint.progress import Offsets, Progress
from fraud_filter.metrics import catalogue
from fraud_filter.metrics.server import Registry

State = Literal["starting", "warming-up", "standby", "running", "waiting-for-slots", "backing-off", "stopping"]


class FilterMetrics:
    """What the filter says of itself, labelled with the execution mode and the name of the query.

    A value that is not known has no series: an absent offset is not offset 0.
    """

    def __init__(self, registry: Registry, *, mode: str, query: str, topic: str, reasons: Iterable[str] = ()) -> None:
        """`reasons`: all values of the restarts' label `reason`."""
        self._values = (mode, query)
        self._topic = topic
        self._partitions: set[int] = set()
        self._told_held: set[int] = set()

        self._restarts = catalogue.RESTARTS.make(registry)
        for reason in reasons:
            self._restarts.labels(*self._values, reason)
        self._takeovers = catalogue.TAKEOVERS.make(registry)
        self._differs = catalogue.DIFFERS.make(registry)
        self._rules = catalogue.RULES_INFO.make(registry)
        self._up = catalogue.UP.make(registry)
        self._healthy = catalogue.HEALTHY.make(registry)
        self._commits = catalogue.COMMITS.make(registry)
        self._rows = catalogue.INPUT_RECORDS.make(registry)
        self._lost = catalogue.LOST_RECORDS.make(registry)
        self._set_aside = catalogue.SET_ASIDE.make(registry)
        for counter in (self._commits, self._rows, self._lost, self._set_aside, self._takeovers):
            counter.labels(*self._values)  # there from the start, so that the first increase shows
        self._state = catalogue.STATE.make(registry)
        self._rate = catalogue.INPUT_RATE.make(registry)
        self._phase = catalogue.PHASE_DURATION.make(registry)
        self._committed = catalogue.COMMITTED_OFFSET.make(registry)
        self._read = catalogue.READ_OFFSET.make(registry)
        self._latest = catalogue.LATEST_OFFSET.make(registry)
        self._lag = catalogue.CONSUMER_LAG.make(registry)
        self._held = catalogue.HELD_RECORDS.make(registry)
        self._held_since = catalogue.HELD_SINCE.make(registry)
        self._unknown = catalogue.UNKNOWN_PARTITIONS.make(registry)
        self._last = catalogue.LAST_PROGRESS.make(registry)
        self._needed = catalogue.SLOTS_NEEDED.make(registry)
        self._granted = catalogue.SLOTS_GRANTED.make(registry)
        self._keys = catalogue.VELOCITY_KEYS.make(registry)
        self._memory = catalogue.VELOCITY_MEMORY.make(registry)
        self._disk = catalogue.VELOCITY_DISK.make(registry)
        self._commit = catalogue.VELOCITY_COMMIT.make(registry)
        self._late = catalogue.LATE_RECORDS.make(registry)
        self._model = catalogue.MODEL.make(registry)
        if mode in catalogue.LATE_RECORDS.modes:
            self._late.labels(*self._values)
        self._differs.labels(*self._values).set(0)
        self._up.labels(*self._values).set(0)
        self._healthy.labels(*self._values).set(0)

    def tell_model(self, version: str) -> None:
        """The model that gives scores."""
        self._model.labels(*self._values, version).set(1)

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

    def count_takeover(self) -> None:
        """A standby begins to work in place of another filter."""
        self._takeovers.labels(*self._values).inc()

    def set_differs(self, differs: bool) -> None:
        """Whether we are a standby with other rules or settings than the active filter's."""
        self._differs.labels(*self._values).set(differs)

    def set_rules(self, version: str) -> None:
        """The version of the rules that this program has."""
        self._rules.labels(*self._values, version).set(1)

    def count_lost(self, records: int) -> None:
        """Records are gone from the input topic that nobody has read."""
        self._lost.labels(*self._values).inc(records)

    def count_set_aside(self) -> None:
        """A record was rejected because it ended the query each time."""
        self._set_aside.labels(*self._values).inc()

    def observe(self, progress: Progress, commits: int) -> None:
        """A newer commit was seen; `commits` is how many there were since the last one."""
        self._commits.labels(*self._values).inc(commits)
        self._rows.labels(*self._values).inc(max(progress.rows, 0))
        self._last.labels(*self._values).set(progress.at)
        if progress.rows_per_second is not None:
            self._rate.labels(*self._values).set(progress.rows_per_second)
        for phase, seconds in progress.durations_s.items():
            self._phase.labels(*self._values, phase).set(seconds)
        if state := progress.state:
            self._keys.labels(*self._values).set(state.keys)
            self._memory.labels(*self._values).set(state.memory_bytes)
            self._disk.labels(*self._values).set(state.disk_bytes)
            self._commit.labels(*self._values).set(state.commit_s)
            self._late.labels(*self._values).inc(state.late)

    def set_offsets(
        self,
        committed: Offsets,
        latest: Offsets,
        readable: Offsets | None = None,
        *,
        told: Offsets | None = None,
        partitions: Collection[int] = (),
    ) -> Offsets:
        """Committed and end offsets by partition; the lag of those partitions of which both are known.

        Ends that are not known at all (no broker answers) stay as they were; what is known of a partition that the
        topic has no longer is forgotten, and so is the end of one of which no broker tells.

        Args:
            readable: up to where records follow, where that is less than the end.
            told: up to where running tasks say that they have read.
            partitions: those of the topic, where `latest` may lack some.

        Returns:
            The lag by partition.
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
        lag = {n: max(0, end - read[n]) for n, end in ends.items() if n in read}
        self._set(self._lag, lag)
        return lag

    def set_held(self, held: Offsets, since: dict[int, float]) -> None:
        """How many offsets open transactions hold, by partition, and since when (seconds since 1970) where some do."""
        self._forget(self._told_held - held.keys(), self._held)
        self._forget(self._told_held - since.keys(), self._held_since)
        self._told_held = set(held)
        self._set(self._held, held)
        self._set(self._held_since, since)

    def forget_offsets(self) -> None:
        """Tells of no partition any more: another filter does."""
        self._forget(self._partitions, self._committed, self._read, self._latest, self._lag)
        self._partitions = set()
        self.set_held({}, {})

    def _set(self, gauge: Gauge, values: Mapping[int, float]) -> None:
        for number, value in values.items():
            gauge.labels(*self._values, self._topic, str(number)).set(value)

    def _forget(self, numbers: Iterable[int], *gauges: Gauge) -> None:
        for number in numbers:
            for gauge in gauges:
                with suppress(KeyError):
                    gauge.remove(*self._values, self._topic, str(number))
