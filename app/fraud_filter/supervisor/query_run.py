"""One query: built, handed to Spark, and followed until something ends it."""

from __future__ import annotations

import queue
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fraud_filter.checkpoint.files import open_files
from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.modes import V1_CHECKPOINTS
from fraud_filter.query import preflight
from fraud_filter.query.user_query import UserQuery
from fraud_filter.spark.executors import name_executors
from fraud_filter.spark.internals import task_scheduler
from fraud_filter.supervisor.failures import DataLossError, RestartableError, explain_failure
from fraud_filter.supervisor.losses import compare, require_all
from fraud_filter.text.logs import get_logger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from fraud_filter.monitor.watchdog import Verdict
    from fraud_filter.query.once import Written
    from fraud_filter.supervisor.java import Java
    from fraud_filter.supervisor.signals import Stop

_log = get_logger(__name__)
_PYTHON = {
    "price": "4 us of CPU a row more than Spark's own functions; in continuous mode a row waits for 99 others",
    "measured": "28 November 2026: pytest -s tests/embedded/test_user_query.py -k price",
}


@dataclass(frozen=True)
class Prepared:
    """Decisions that were built while `executors` were there, which takes Spark some time; `of` says what for, to tell
    whether they fit later."""

    of: tuple[object, ...]
    decisions: DataFrame
    written: Written
    executors: frozenset[str]


def prepare(
    spark: SparkSession,
    inputs: preflight.Inputs,
    settings: Settings,
    topic_id: str,
    watermark_ms: int = 0,
    kept: Prepared | None = None,
) -> Prepared:
    """The decisions over `inputs`, those `kept` where they fit.

    `topic_id` is that of the input topic, or "", `watermark_ms` as of `decide`.

    Raises:
        UsageError: they hold what the mode can't run.
    """
    from fraud_filter.query import sources
    from fraud_filter.query.once import Written

    executors = name_executors(spark)
    of = inputs.partitions, settings, topic_id, watermark_ms, executors
    if kept and kept.of == of:
        return kept
    if inputs.state_partitions:
        spark.conf.set(V1_CHECKPOINTS, "false")
    records = sources.read(spark, inputs.mode, inputs.query.schema, settings, inputs.partitions)
    written = Written(executors=executors if inputs.mode.late_commits else ())
    decisions = inputs.query.decide(records, settings, topic_id, written, watermark_ms=watermark_ms)
    preflight.check_plan(decisions, inputs.mode)
    return Prepared(of, decisions, written, executors)


def plan_query(spark: SparkSession, inputs: preflight.Inputs, settings: Settings) -> preflight.Inputs:
    """The inputs with a query of the user's planned, and the partitions of its state; tells what is not known of it.

    Raises:
        UsageError: it can't be planned, or the mode can't run it.
    """
    from fraud_filter.query import sources

    query = inputs.query
    if not isinstance(query, UserQuery):
        return inputs
    records = sources.read(spark, inputs.mode, query.schema, settings, inputs.partitions)
    rows = query.rows(records, settings)
    preflight.check_plan(rows, inputs.mode)
    query = query.plan(rows, records)
    if query.without_places:
        _log.warning(
            "places_unknown", query=settings.query_name, function=query.reference, reason=query.without_places,
            not_told="latency, rows that are written twice, late writes",
        )  # fmt: skip
    if preflight.calls_python(rows):
        _log.warning("python_in_rows", function=query.reference, **_PYTHON)
    return replace(inputs, query=query, state_partitions=preflight.count_shuffled(rows, settings))


def start(writer: DataStreamWriter, settings: Settings) -> StreamingQuery:
    """Starts a query.

    Raises:
        UsageError: Spark refuses it in this mode.
        FraudFilterError: Spark fails, perhaps for a while.
    """
    from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException, PySparkException

    from fraud_filter.spark.session import first_line

    try:
        return writer.start()
    except (AnalysisException, ParseException, IllegalArgumentException) as error:
        raise UsageError(f"the query can't start in {settings.mode} mode: {first_line(error)}") from None
    except PySparkException as error:
        raise explain_failure(error, settings) from None


_POLL_S = 0.2


class Ending:
    """Follows one query; `alarm` is for the watchdog, in whatever thread it runs."""

    def __init__(self, query: StreamingQuery, settings: Settings, prepared: Prepared, *, gives_way: bool) -> None:
        """`prepared` is what the query was started from, `gives_way` as of `Watchdog`."""
        self._query, self._settings, self._prepared, self._gives_way = query, settings, prepared, gives_way
        # No SimpleQueue: its `get` waits forever where a signal handler outlasts its timeout (Python 3.11).
        self._errors: queue.Queue[FraudFilterError] = queue.Queue()
        threading.Thread(target=self._await_end, name="query-end", daemon=True).start()

    def alarm(self, verdict: Verdict) -> None:
        """Ends the query when a start would be a remedy."""
        if verdict.remedy:
            self._errors.put(RestartableError(verdict.remedy, verdict.trouble))

    def hand_over(self) -> None:
        """Ends the query in favour of another filter."""
        self._errors.put(RestartableError("handed-over", "another filter has asked to go on from the checkpoint"))

    def wait(self, java: Java, stop: Stop) -> FraudFilterError | None:
        """Why the query ended or must, or None when somebody wishes it to stop; makes no call that could hang."""
        while not stop.requested:
            with suppress(queue.Empty):
                return self._errors.get(timeout=_POLL_S)
            if java.returncode is not None:
                return RestartableError("java-gone", f"Spark's Java process ended with code {java.returncode}")
        return None

    def _await_end(self) -> None:
        try:
            self._query.awaitTermination()
            mode = self._settings.mode
            self._errors.put(RestartableError("query-ended", f"the query ended by itself in {mode} mode"))
        except Exception as error:
            failed = explain_failure(error, self._settings)
            if isinstance(failed, RestartableError) and failed.reason == "query-failed":
                with suppress(Exception):  # Java is gone
                    scheduler = task_scheduler(self._prepared.decisions.sparkSession)
                    if lost := {name for name in self._prepared.executors if not scheduler.isExecutorAlive(name)}:
                        text = f"executors were lost ({', '.join(sorted(lost))}): {failed}"
                        failed = RestartableError("slots-lacking" if self._gives_way else "slots-back", text)
            self._errors.put(failed)


def explain_end(error: Exception, java: Java, spark: SparkSession | None, settings: Settings) -> Exception:
    """The error to act on. Where a query failed and records are gone, that is their loss."""
    from py4j.protocol import Py4JError

    if isinstance(error, RestartableError) and error.reason != "query-failed":
        return error
    if java.overdue:
        return RestartableError("start-hung", f"the start took longer than {settings.start_timeout_s:g} s")
    if java.returncode is not None and not isinstance(error, FraudFilterError):
        return RestartableError("java-gone", f"Spark's Java process ended with code {java.returncode}")
    if isinstance(error, RestartableError | DataLossError) and spark:  # the second names the offsets less well
        try:
            with java.killed_after(settings.kafka_timeout_s * 2):
                _require_all(spark, settings)
        except DataLossError as loss:
            return loss
        except (FraudFilterError, Py4JError, OSError):
            return error
    return explain_failure(error, settings) if isinstance(error, Py4JError | OSError) else error


def _require_all(spark: SparkSession, settings: Settings) -> None:
    if settings.source == "kafka" and settings.fail_on_data_loss:
        require_all(compare(open_files(spark, settings.checkpoint), settings), settings)
