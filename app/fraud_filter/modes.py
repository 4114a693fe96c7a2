"""The four execution modes, as one table. A mode is data: whatever asks for one asks its value here.

Sources of the facts: Spark guide, "Structured Streaming Performance Tips" (asynchronous progress tracking,
continuous processing) and "Real-time mode"; the measured ones are explained in docs/modes.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fraud_filter.config import ModeName, Settings, SinkName, SourceKind, duration_s

Options = Callable[[Settings], dict[str, str]]

#: What the fast modes aim at for 99 of 100 decisions, in milliseconds: the line in every plot of several modes.
OBJECTIVE_MS = 20

_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_BY_FILE_SYSTEM = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
#: Continuous Processing, "Supported Queries": only map-like operations.
_MAP_LIKE = frozenset({"Project", "Filter"})
#: A session's setting: real-time mode takes a commit log that has no ids of state.
V1_CHECKPOINTS = "spark.sql.streaming.realTimeMode.dangerouslyAllowCheckpointV1.enabled"
_ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
#: Real-time Mode, "Supported Queries": stateless queries, unions and stream-static joins.
_STATELESS = _MAP_LIKE | {"Union", "Join", "Generate", "EventTimeWatermark", "ResolvedHint", "CollectMetrics"}
#: What WITH and |> become.
_OF_SQL = frozenset({"WithCTE", "CTERelationDef", "CTERelationRef", "PipeOperator"})
#: Of `applyInPandasWithState` and `transformWithState`.
_GROUPED = frozenset({"FlatMapGroupsInPandasWithState", "TransformWithStateInPySpark"})
STATEFUL = _GROUPED | {"Aggregate", "Deduplicate", "DeduplicateWithinWatermark", "Distinct"}
_ONE_ROW = "records of one key in one micro-batch would become one row, with one decision"


def _none(_: Settings) -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class Interval:
    """The setting that says how often a mode commits, and the shortest that its engine takes."""

    setting: str
    #: In seconds; an interval has to be longer where `exclusive`.
    least_s: float = 0
    exclusive: bool = False
    advice: str = ""

    def seconds(self, settings: Settings) -> float:
        """The interval that is set."""
        return duration_s(getattr(settings, self.setting))

    def is_too_short(self, settings: Settings) -> bool:
        """Whether the engine would refuse it."""
        seconds = self.seconds(settings)
        return seconds < self.least_s or (self.exclusive and seconds == self.least_s)


@dataclass(frozen=True)
class Resume:
    """How a mode's engine begins from a checkpoint; what it reads there is told in `checkpoint/plan.py`.

    `runs_planned_again`: a batch that was planned and not committed runs again with its own end, so that a sink that
    remembers batch numbers stays right. `skips_numbers`: it takes the stored entry before the newest, whatever its
    number. `from_commit`: it goes on from the newest commit, and reads neither the entry before it nor metadata.
    """

    runs_planned_again: bool = False
    skips_numbers: bool = False
    from_commit: bool = False


@dataclass(frozen=True)
class Mode:
    """How one execution mode runs the query.

    `trigger` gives the arguments of `DataStreamWriter.trigger`; `query_options`, `source_options` and
    `session_conf` give what the mode adds to the query, to Spark's Kafka source and to the Spark session.
    `holds_tasks`: one task per input partition runs as long as the query, so each needs a task slot of its own.
    `sends_progress`: Spark makes progress events of the query. `timely_commits`: commits come at intervals whatever
    the load, so that one that stays away is a fault also while records flow. `late_commits`: commits are minutes apart,
    so that what running tasks tell with their heartbeats is the progress. `skips_removed`: with failOnDataLoss off
    Spark's reader goes on after records that are gone (the one of real-time mode fails on them all the same).
    `interval` is the time between commits, `resume` how the engine begins from a checkpoint.
    `writes_metadata`: its entries of the offset log have a metadata line. `writes_each_batch`: each batch has one.
    `lacks_features`: why the features of a rules file can't be computed in it; empty where they can.
    `operators` are the logical operators that the mode runs, None for all of them; `keeps_state`: also those with
    state. `delivery_guarantee` is what Kafka holds in the end, as a start reads what the outputs hold.
    `objective_ms`: 99 of 100 decisions are to take no longer, in milliseconds, where no setting says otherwise.
    `colour` and `marker` (a shape by matplotlib's name) show it in terminal, plots and pages.
    """

    name: ModeName
    trigger: Options
    holds_tasks: bool
    sends_progress: bool
    sources: frozenset[SourceKind]
    sinks: frozenset[SinkName]
    interval: Interval
    resume: Resume
    objective_ms: int
    colour: str
    marker: str
    writes_metadata: bool = True
    writes_each_batch: bool = True
    operators: frozenset[str] | None = None
    keeps_state: bool = True
    lacks_features: str = ""
    timely_commits: bool = False
    late_commits: bool = False
    skips_removed: bool = True
    output_mode: str = "append"
    query_options: Options = _none
    source_options: Options = _none
    session_conf: Options = _none
    log_delay_s: Callable[[Settings], float] = lambda _: 0
    delivery_guarantee: str = "exactly one decision"

    def runs(self, operator: str) -> bool:
        """Whether the mode can run a logical operator of Spark's."""
        if self.operators is None:
            return self.keeps_state or operator not in STATEFUL
        return operator in self.operators

    def commit_interval_s(self, settings: Settings) -> float:
        """How long a healthy query may show no sign of progress although it works."""
        return self.interval.seconds(settings) + self.log_delay_s(settings)


def _batch_limit(settings: Settings) -> dict[str, str]:
    limit = settings.max_offsets_per_trigger
    return {"maxOffsetsPerTrigger": str(limit)} if limit else {}


def _micro_batch(settings: Settings) -> dict[str, str]:
    return {"processingTime": settings.micro_batch_interval}


def _light_logs(settings: Settings) -> dict[str, str]:
    """For modes in which records stream on while Spark writes its logs.

    Spark's default on a local disk starts ten processes for each log entry, and they take the cores for a tenth of a
    second: at each epoch of continuous mode that was the 99th percentile.
    """
    return {_FILE_MANAGER: _BY_FILE_SYSTEM} if settings.checkpoint_is_local else {}


def _real_time(settings: Settings) -> dict[str, str]:
    return {
        **_light_logs(settings),
        # Spark 4.3.0 refuses a commit log of version 1, which the other modes and older Sparks write: it has no ids of
        # state. A query without state has none to lose, and one with state does not get this (`supervisor/query_run`).
        V1_CHECKPOINTS: "true",
        # For features, whose payments go through a shuffle to their key's state.
        "spark.sql.shuffle.partitions": str(settings.velocity_partitions),
        "spark.sql.streaming.stateStore.providerClass": _ROCKS_DB,
        # A start loads the newest snapshot of the state and replays what was logged since: by default up to ten
        # batches, which are minutes long here.
        "spark.sql.streaming.stateStore.minDeltasForSnapshot": "1",
        "spark.sql.streaming.stateStore.maintenanceInterval": "30s",
        # By default a payment waits for others, up to 50 ms, before it is sent to its state.
        "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1",
        # By default a task waits 3 s for the executor that has its state. Its cores may be taken, and are so for the
        # whole batch.
        "spark.locality.wait": "0s",
    }


MODES: dict[ModeName, Mode] = {
    mode.name: mode
    for mode in (
        Mode(
            name="micro-batch",
            lacks_features=_ONE_ROW,
            colour="#d55e00",
            marker="s",
            interval=Interval("micro_batch_interval"),
            resume=Resume(runs_planned_again=True),
            objective_ms=1000,
            trigger=_micro_batch,
            holds_tasks=False,
            sends_progress=True,
            sources=frozenset({"kafka", "rate", "socket", "format"}),
            sinks=frozenset({"kafka", "console", "memory"}),
            source_options=_batch_limit,
        ),
        Mode(
            name="async-progress",
            lacks_features=_ONE_ROW,
            colour="#b8548f",
            marker="D",
            interval=Interval("micro_batch_interval"),
            log_delay_s=lambda settings: settings.async_progress_interval_ms / 1000,
            resume=Resume(runs_planned_again=True, skips_numbers=True),
            objective_ms=500,
            writes_each_batch=False,
            keeps_state=False,  # AsyncProgressTrackingMicroBatchExecution.checkNotStatefulStreamingQuery
            trigger=_micro_batch,
            holds_tasks=False,
            sends_progress=True,
            sources=frozenset({"kafka", "rate"}),
            sinks=frozenset({"kafka"}),
            query_options=lambda settings: {
                "asyncProgressTrackingEnabled": "true",
                "asyncProgressTrackingCheckpointIntervalMs": str(settings.async_progress_interval_ms),
            },
            source_options=_batch_limit,
            session_conf=_light_logs,
        ),
        Mode(
            name="continuous",
            lacks_features="its engine has no state",
            colour="#0072b2",
            marker="^",
            interval=Interval("continuous_interval", exclusive=True, advice="epochs of 1 to 10 seconds are usual"),
            resume=Resume(from_commit=True),
            objective_ms=OBJECTIVE_MS,
            writes_metadata=False,
            trigger=lambda settings: {"continuous": settings.continuous_interval},
            timely_commits=True,
            holds_tasks=True,
            sends_progress=False,  # SPARK-23887
            sources=frozenset({"kafka", "rate", "socket", "format"}),
            sinks=frozenset({"kafka", "console", "memory"}),
            operators=_MAP_LIKE,
            # The reader asks for the partition's end offset after each fetch, on the connection that the next
            # long-polling fetch already blocks: a record would wait for its successor.
            source_options=lambda settings: {
                "kafka.fetch.max.wait.ms": str(settings.continuous_fetch_max_wait_ms),
                "kafka.max.poll.records": str(settings.continuous_max_poll_records),
            },
            session_conf=_light_logs,
        ),
        Mode(
            name="real-time",
            colour="#009e73",
            marker="o",
            interval=Interval(
                "real_time_duration",
                least_s=5,  # spark.sql.streaming.realTimeMode.minBatchDuration
                advice="Spark takes 5 seconds and more, and each batch end pauses the query, so give minutes",
            ),
            resume=Resume(skips_numbers=True),
            objective_ms=OBJECTIVE_MS,
            late_commits=True,
            trigger=lambda settings: {"realTime": settings.real_time_duration},
            holds_tasks=True,
            sends_progress=True,  # at each batch end only
            skips_removed=False,
            output_mode="update",
            sources=frozenset({"kafka", "format"}),
            sinks=frozenset({"kafka", "console"}),
            operators=_STATELESS | _OF_SQL | {"Aggregate", "Expand", "Deduplicate", "Distinct", "Repartition"},
            session_conf=_real_time,
        ),
    )
}
