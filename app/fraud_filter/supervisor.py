"""Starts the query, watches it, and stops it cleanly within a bounded time."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from fraud_filter import preflight, rule_check, session
from fraud_filter.checkpoint.startup import prepare_checkpoint
from fraud_filter.config import Settings
from fraud_filter.errors import EXIT_OK, FraudFilterError
from fraud_filter.monitor import Monitor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_log = logging.getLogger(__name__)
_POLL_S = 0.5


class Stop:
    """Set by SIGTERM or SIGINT: the wish to stop cleanly."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.signal = ""

    def request(self, number: int, _frame: object = None) -> None:
        """Signal handler."""
        self.signal = signal.Signals(number).name
        self._event.set()

    @property
    def requested(self) -> bool:
        """Whether somebody wished to stop."""
        return self._event.is_set()


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Handles SIGTERM and SIGINT while the block runs."""
    stop = Stop()
    previous = {number: signal.signal(number, stop.request) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def run(settings: Settings, on_start: Callable[[StreamingQuery], None] | None = None) -> int:
    """Runs the filter until SIGTERM, SIGINT or the end of the query.

    Args:
        settings: the effective configuration.
        on_start: called with the query once it runs.

    Returns:
        The exit code: 0 after a clean stop.

    Raises:
        UsageError: bad input, found before or at the start.
        FraudFilterError: the query failed.
    """
    with stop_on_signals() as stop:
        inputs = preflight.check_inputs(settings)
        if stop.requested:
            return EXIT_OK
        with closing(Monitor(settings, inputs)) as monitor:
            return _run(settings, inputs, monitor, stop, on_start)


def _run(
    settings: Settings,
    inputs: preflight.Inputs,
    monitor: Monitor,
    stop: Stop,
    on_start: Callable[[StreamingQuery], None] | None,
) -> int:
    spark = session.start(settings, inputs.mode)
    try:
        if stop.requested:
            return EXIT_OK
        rule_check.check_rules(spark, inputs.rules, inputs.schema)
        slots = preflight.check_slots(spark, inputs, settings)
        query = _start(spark, inputs, settings)
        _log.info(
            "event=started mode=%s query=%s run=%s partitions=%d task_slots=%d rules=%d",
            settings.mode, settings.query_name, query.runId, inputs.partitions, slots, len(inputs.rules.rules),
        )  # fmt: skip
        monitor.watch(spark, query, slots)
        if on_start:
            on_start(query)
        return _watch(query, settings, stop)
    finally:
        monitor.close()
        _end(spark, settings)


def _start(spark: SparkSession, inputs: preflight.Inputs, settings: Settings) -> StreamingQuery:
    from pyspark.errors import PySparkException

    from fraud_filter import query, sinks, sources

    records = sources.read(spark, inputs.mode, inputs.schema, settings)
    decisions = query.decide(records, inputs.schema, inputs.rules, settings)
    preflight.check_plan(decisions, inputs.mode)
    prepare_checkpoint(spark, settings)
    try:
        return sinks.write(decisions, inputs.mode, settings).start()
    except PySparkException as error:
        raise preflight.explain_start(error, settings) from None


def _watch(query: StreamingQuery, settings: Settings, stop: Stop) -> int:
    from py4j.protocol import Py4JNetworkError
    from pyspark.errors import StreamingQueryException

    try:
        while not stop.requested:
            if query.awaitTermination(_POLL_S):  # type: ignore[arg-type]  # seconds, fractions allowed
                _log.error("event=ended mode=%s query=%s", settings.mode, settings.query_name)
                raise FraudFilterError(f"the query ended by itself in {settings.mode} mode")
        began = time.monotonic()
        _log.info("event=stopping mode=%s query=%s signal=%s", settings.mode, settings.query_name, stop.signal)
        query.stop()
    except StreamingQueryException as error:
        raise FraudFilterError(f"the query failed in {settings.mode} mode: {_cause(error)}") from None
    except (Py4JNetworkError, ConnectionError):
        raise FraudFilterError(
            f"Spark's Java process is gone; the query no longer runs in {settings.mode} mode"
        ) from None
    seconds = time.monotonic() - began
    _log.info("event=stopped mode=%s query=%s seconds=%.1f", settings.mode, settings.query_name, seconds)
    return EXIT_OK


def _cause(error: Any) -> str:
    """The innermost reason that Spark gives, without its stack trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return causes[-1] if causes else lines[0] if lines else type(error).__name__


def _end(spark: SparkSession, settings: Settings) -> None:
    """Stops Spark and waits for Java's end; when the time is over it is killed, so that nothing is left behind."""
    gateway: Any = spark.sparkContext._gateway
    java: Any = gateway.proc
    timer = threading.Timer(settings.stop_timeout_s, java.kill)
    timer.daemon = True
    timer.start()
    try:
        spark.stop()
        gateway.shutdown()  # what Python frees from now on is not told to a Java that is gone
    except ConnectionError:  # Java is gone already: nothing is left to stop
        _log.warning("event=java_gone query=%s", settings.query_name)
    finally:
        java.stdin.close()  # Java ends at the end of its input
        java.wait()
        timer.cancel()
