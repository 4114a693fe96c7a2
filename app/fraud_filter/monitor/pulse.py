"""What a running query says of itself each second, asked by a thread that may hang when Java does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fraud_filter.checkpoint.progress import Offsets, Progress, ProgressReader
from fraud_filter.spark.executors import Executor, read_executors
from fraud_filter.spark.internals import TaskReads
from fraud_filter.text.logs import get_logger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = get_logger(__name__)

_LOOK_S = 1.0

#: How long the end of a query waits for the last look.
_LAST_LOOK_S = 1.0


@dataclass(frozen=True)
class Pulse:
    """`at`: when Java answered (seconds of the monotonic clock); `executors`: those that live; `records` changes while
    tasks read or write records, also within a batch: what it is made of is Spark's matter; `read` is the next offset
    that running tasks will read, by partition, where they are asked."""

    at: float
    executors: tuple[Executor, ...]
    records: Hashable
    read: Offsets = field(default_factory=dict)

    @property
    def slots(self) -> int:
        """Task slots granted."""
        return sum(executor.cores for executor in self.executors)


class PulseReader:
    """Asks Java for the pulse until `stop`, or until Java is gone."""

    def __init__(
        self,
        spark: SparkSession,
        reader: ProgressReader,
        report: Callable[[Progress], None],
        chore: Callable[[], None] = lambda: None,
        reads: TaskReads | None = None,
    ) -> None:
        """`report` is told the progress that `reader` finds; `chore` is done at each look: it may ask Java; `reads`
        asks running tasks."""
        self._chore = chore
        self._reads = reads
        self._read: Offsets = {}
        self.newest: Pulse | None = None
        self._spark = spark
        self._reader = reader
        self._report = report
        self._records: Hashable = ()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)

    def start(self) -> PulseReader:
        """Begins."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Ends it, after a last look; a thread that hangs in Java is left to Java's end."""
        self._stop.set()
        self._thread.join(_LAST_LOOK_S)

    def _run(self) -> None:
        from py4j.protocol import Py4JNetworkError

        is_last = False
        while not is_last:
            is_last = self._stop.wait(_LOOK_S)
            try:
                self._look()
            except (Py4JNetworkError, OSError):
                return  # Java is gone: the supervisor sees that too
            except Exception as error:
                _log.debug("pulse_failed", error=error)

    def _look(self) -> None:
        from py4j.protocol import Py4JError, Py4JNetworkError

        self._chore()
        newest = self._reader.newest()
        if newest:
            self._report(newest)
        executors = read_executors(self._spark)
        try:
            self._records = _records(self._spark)
            if self._reads:
                self._read = self._reads.look()
        except Py4JError as error:  # Java has answered, if only with a refusal
            _log.debug("pulse_failed", error=error)
            if isinstance(error, Py4JNetworkError):
                raise
        self.newest = Pulse(time.monotonic(), executors, self._records, self._read)


def _records(spark: SparkSession) -> Hashable:
    """Records read and written by the running tasks, and the newest plan's metrics; they come with heartbeats (10 s).

    Measured: by stage nothing is told in continuous and real-time mode, hence the plan is asked as well.
    """
    store: Any = spark.sparkContext._jsc.sc().statusStore()
    stages = store.activeStages()
    counts = tuple(
        (stage.stageId(), stage.attemptId(), stage.inputRecords(), stage.outputRecords())
        for stage in (stages.apply(index) for index in range(int(stages.size())))
    )
    session: Any = spark._jsparkSession
    plans = session.sharedState().statusStore()
    count = int(plans.executionsCount())
    newest = plans.executionsList(count - 1, 1) if count else None
    metrics = str(plans.executionMetrics(newest.head().executionId()).toString()) if newest is not None else ""
    return (*(each for each in counts if any(each[2:])), metrics)
