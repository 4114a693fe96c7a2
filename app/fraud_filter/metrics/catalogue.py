"""Every metric of the project's own programs, declared once: programs make them from here (`Metrics`), and so are the
tables of docs/metrics.md.

Names are those on the page. A program's metrics stand in the order of its page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import Metric
from prometheus_client.metrics import MetricWrapperBase

from fraud_filter.config import ModeName
from fraud_filter.modes import MODES

Program = Literal["filter", "probe", "generator"]
#: The class of a metric: Counter, Gauge, Histogram.
Made = TypeVar("Made", bound=MetricWrapperBase)

#: Seconds. Fine where the fast modes are (1 to 20 ms), coarse where a backlog shows (up to 60 s).
LATENCY_BUCKETS_S = (
    *(0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.008, 0.01, 0.012, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075),
    *(0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0),
)
#: Fine at both ends, where a good model's scores are.
SCORE_BUCKETS = (0.01, 0.05, *(tenth / 10 for tenth in range(1, 10)), 0.95, 0.99, 1.0)


@dataclass(frozen=True)
class Entry(Generic[Made]):
    """One metric: `program` serves it, with values in `modes`.

    `at_scrape`: a collector reads its values when they are asked for; all others are made by `Metrics`. `buckets`: the
    upper bounds of a histogram's.
    """

    kind: type[Made]
    program: Program
    name: str
    help: str
    labels: tuple[str, ...]
    modes: frozenset[ModeName]
    at_scrape: bool = False
    buckets: tuple[float, ...] = ()

    @property
    def type(self) -> str:
        """As Prometheus calls it."""
        return self.kind.__name__.lower()

    def make(self, registry: CollectorRegistry) -> Made:
        """The metric, to be set and counted."""
        options: dict[str, Any] = {"buckets": self.buckets} if self.buckets else {}
        return self.kind(self.name, self.help, self.labels, registry=registry, **options)

    def collected(self, samples: Iterable[tuple[Sequence[str], float]]) -> Metric:
        """What a collector gives for the metric at a scrape: of each sample the values of the labels, and its own."""
        family = Metric(self.name.removesuffix("_total"), self.help, self.type)
        for labels, value in samples:
            family.add_sample(self.name, dict(zip(self.labels, labels, strict=True)), value)
        return family


@dataclass(frozen=True)
class _Group:
    """Metrics of one program that have `labels` and `modes` in common."""

    program: Program
    labels: tuple[str, ...]
    modes: frozenset[ModeName] = frozenset(MODES)
    at_scrape: bool = False

    def of(self, kind: type[Made], name: str, text: str, *more: str, buckets: tuple[float, ...] = ()) -> Entry[Made]:
        """One of them, with `more` labels."""
        return Entry(kind, self.program, name, text, (*self.labels, *more), self.modes, self.at_scrape, buckets)


class Metrics:
    """The metrics of one program that it sets and counts: `metrics.of(FLAGGED).inc()`."""

    def __init__(self, registry: CollectorRegistry, program: Program, labels: tuple[str, ...]) -> None:
        """`labels`: values of the labels that all of them have, in order: mode and query."""
        self._labels = labels
        self._made = {
            entry: entry.make(registry) for entry in CATALOGUE if entry.program == program and not entry.at_scrape
        }

    def of(self, entry: Entry[Made], *labels: str) -> Made:
        """The series with these values of the further labels; from the first call on the page has it."""
        made: Made = self._made[entry]
        return made.labels(*self._labels, *labels)

    def remove(self, entry: Entry[Any], *labels: str) -> None:
        """Takes the series off the page, if it is there."""
        with suppress(KeyError):
            self._made[entry].remove(*self._labels, *labels)


_FILTER = _Group("filter", ("mode", "query"))
_PARTITION = _Group("filter", (*_FILTER.labels, "topic", "partition"))
#: Spark tells the phases of a batch in progress events.
_BATCH = _Group("filter", _FILTER.labels, frozenset(mode.name for mode in MODES.values() if mode.sends_progress))
_VELOCITY = _Group("filter", _FILTER.labels, frozenset(mode.name for mode in MODES.values() if not mode.lacks_features))
_EXECUTOR = _Group("filter", (*_FILTER.labels, "executor"), at_scrape=True)
_PROGRAM = _Group("filter", (), at_scrape=True)
_PROBE = _Group("probe", ("mode", "query"))
_GENERATOR = _Group("generator", (), at_scrape=True)

RESTARTS = _FILTER.of(
    Counter,
    "fraud_filter_restarts_total",
    "Restarts of the query from its checkpoint, by reason.",
    "reason",
)
TAKEOVERS = _FILTER.of(Counter, "fraud_filter_takeovers_total", "How often this program, a standby, has taken over.")
DIFFERS = _FILTER.of(
    Gauge,
    "fraud_filter_standby_differs",
    "1 while this program is a standby with other rules or settings than the active filter.",
)
RULES_INFO = _FILTER.of(
    Gauge,
    "fraud_filter_rules_info",
    "Always 1: the version of the rules that this program decides by, or would.",
    "version",
)
UP = _FILTER.of(Gauge, "fraud_filter_up", "1 while the query is active, else 0.")
HEALTHY = _FILTER.of(
    Gauge, "fraud_filter_healthy", "1 while the query is active, keeps up and reads all partitions, else 0."
)
COMMITS = _FILTER.of(Counter, "fraud_filter_commits_total", "Micro-batches, real-time batches or epochs committed.")
INPUT_RECORDS = _FILTER.of(
    Counter, "fraud_filter_input_records_total", "Records read from the input topic, by committed offsets."
)
LOST_RECORDS = _FILTER.of(
    Counter, "fraud_filter_lost_records_total", "Records removed from the input topic before they were read."
)
SET_ASIDE = _FILTER.of(
    Counter,
    "fraud_filter_records_set_aside_total",
    "Records that ended the query each time, and were rejected as undecidable.",
)
STATE = _FILTER.of(Gauge, "fraud_filter_state", "1 for what the program does now, 0 for the other states.", "state")
INPUT_RATE = _FILTER.of(
    Gauge,
    "fraud_filter_input_records_per_second",
    "Rate of the input records of the newest commit.",
)
PHASE_DURATION = _BATCH.of(
    Gauge, "fraud_filter_phase_duration_seconds", "Duration of a phase of the newest batch.", "phase"
)
COMMITTED_OFFSET = _PARTITION.of(Gauge, "fraud_filter_committed_offset", "Next offset to read after the newest commit.")
READ_OFFSET = _PARTITION.of(
    Gauge, "fraud_filter_read_offset", "Next offset to read: as committed, or as tasks report it."
)
LATEST_OFFSET = _PARTITION.of(Gauge, "fraud_filter_latest_offset", "End offset of the input partition.")
CONSUMER_LAG = _PARTITION.of(Gauge, "fraud_filter_consumer_lag_records", "End offset minus the next offset to read.")
HELD_RECORDS = _PARTITION.of(
    Gauge,
    "fraud_filter_held_records",
    "Offsets that an open transaction holds back: high watermark minus last stable offset.",
)
HELD_SINCE = _PARTITION.of(
    Gauge,
    "fraud_filter_held_since_timestamp_seconds",
    "When the filter first saw the open transaction that holds the partition.",
)
UNKNOWN_PARTITIONS = _FILTER.of(
    Gauge,
    "fraud_filter_unknown_partitions",
    "Input partitions whose end no broker can tell.",
)
LAST_PROGRESS = _FILTER.of(Gauge, "fraud_filter_last_progress_timestamp_seconds", "Time of the newest commit.")
SLOTS_NEEDED = _FILTER.of(
    Gauge,
    "fraud_filter_task_slots_needed",
    "Task slots that the mode holds: one a partition, or 0.",
)
SLOTS_GRANTED = _FILTER.of(Gauge, "fraud_filter_task_slots_granted", "Task slots that the application was granted.")

VELOCITY_KEYS = _VELOCITY.of(
    Gauge,
    "fraud_filter_velocity_keys",
    "Rows of the state that features are computed from: a key and a period.",
)
VELOCITY_MEMORY = _VELOCITY.of(
    Gauge, "fraud_filter_velocity_memory_bytes", "Memory that the state takes on the executors."
)
VELOCITY_DISK = _VELOCITY.of(
    Gauge,
    "fraud_filter_velocity_disk_bytes",
    "Files of the state on executors' disks; 0 while all is in memory.",
)
VELOCITY_COMMIT = _VELOCITY.of(
    Gauge,
    "fraud_filter_velocity_commit_seconds",
    "Time that all tasks took to write the state at the newest batch end.",
)
LATE_RECORDS = _VELOCITY.of(
    Counter,
    "fraud_filter_late_records_total",
    "Rows of records behind the watermark, which are not decided.",
)
MODEL = _FILTER.of(
    Gauge,
    "fraud_filter_model_info",
    "Always 1; the label tells the model whose score rules use.",
    "version",
)

EXECUTOR_CORES = _EXECUTOR.of(Gauge, "fraud_filter_executor_cores", "Task slots of the executor.")
EXECUTOR_ACTIVE_TASKS = _EXECUTOR.of(Gauge, "fraud_filter_executor_active_tasks", "Tasks that run on the executor.")
EXECUTOR_TASKS = _EXECUTOR.of(
    Counter,
    "fraud_filter_executor_tasks_total",
    "Tasks that ended on the executor, by how they did.",
    "outcome",
)
EXECUTOR_GC = _EXECUTOR.of(
    Counter, "fraud_filter_executor_gc_seconds_total", "Time that the executor's garbage collections took."
)
EXECUTOR_PEAK_MEMORY = _EXECUTOR.of(
    Gauge, "fraud_filter_executor_peak_memory_bytes", "Most memory that the executor has used.", "area"
)
CERTIFICATE_EXPIRY = _PROGRAM.of(
    Gauge,
    "fraud_filter_certificate_expiry_timestamp_seconds",
    "When a certificate of the connection to Kafka ends, by its file's name.",
    "file",
)
DISK_SIZE = _PROGRAM.of(
    Gauge, "fraud_filter_checkpoint_disk_size_bytes", "Size of the disk that the checkpoint lies on."
)
DISK_FREE = _PROGRAM.of(
    Gauge, "fraud_filter_checkpoint_disk_free_bytes", "Free space on the disk that the checkpoint lies on."
)

LATENCY = _PROBE.of(
    Histogram,
    "fraud_filter_end_to_end_latency_seconds",
    "Time from the append of a record to the append of its decision, both on the broker's clock.",
    buckets=LATENCY_BUCKETS_S,
)
OBJECTIVE = _PROBE.of(
    Gauge,
    "fraud_filter_latency_objective_seconds",
    "What 99 of 100 decisions are to take at most (FRAUD_LATENCY_OBJECTIVE_MS).",
)
SLOW = _PROBE.of(
    Counter,
    "fraud_filter_slow_decisions_total",
    "Decisions that took longer than the objective.",
)
FLAGGED = _PROBE.of(Counter, "fraud_filter_flagged_records_total", "Flagged records read.")
APPROVED = _PROBE.of(
    Counter,
    "fraud_filter_approved_records_total",
    "Approved records read; there are none with emit=flagged.",
)
RULE_MATCHES = _PROBE.of(
    Counter,
    "fraud_filter_rule_matches_total",
    "Rules named by the flagged records read, with the version of the rules that decided.",
    "rule",
    "version",
)
TRUNCATED = _PROBE.of(
    Counter,
    "fraud_filter_truncated_windows_total",
    "Windows of flagged records that may be cut short: the state holds no more of the key's records.",
    "feature",
)
SCORE = _PROBE.of(
    Histogram,
    "fraud_filter_score",
    "Scores of the flagged records read, with the version of the model.",
    "version",
    buckets=SCORE_BUCKETS,
)
REJECTED = _PROBE.of(
    Counter,
    "fraud_filter_rejected_records_total",
    "Rejected records read, by reason.",
    "reason",
)
DUPLICATE = _PROBE.of(
    Counter,
    "fraud_filter_duplicate_records_total",
    "Decisions read on a record that had been decided before.",
)
LATE_WRITES = _PROBE.of(
    Counter,
    "fraud_filter_late_writes_total",
    "Decisions of a writer that were appended after the first one of a later writer: each may be a duplicate.",
)
UNREADABLE = _PROBE.of(
    Counter,
    "fraud_filter_unreadable_records_total",
    "Records on the output topics without readable source headers.",
)
NEGATIVE_LATENCY = _PROBE.of(
    Counter,
    "fraud_filter_negative_latency_records_total",
    "Decisions that bear an earlier time than their record: the brokers' clocks differ.",
)
LAST_OUTPUT = _PROBE.of(
    Gauge,
    "fraud_filter_last_output_timestamp_seconds",
    "Append time of the newest record on the output topics.",
)
SENT = _GENERATOR.of(Counter, "fraud_filter_generator_sent_records_total", "Records handed to the Kafka client.")
FAILED = _GENERATOR.of(
    Counter, "fraud_filter_generator_failed_records_total", "Records known not to have been delivered."
)
LATE = _GENERATOR.of(
    Counter,
    "fraud_filter_generator_late_records_total",
    "Records sent more than 10 ms after they were due.",
)

CATALOGUE: tuple[Entry[Any], ...] = tuple(each for each in tuple(globals().values()) if isinstance(each, Entry))
