"""Silence about what a clean stop does to Spark: its long tasks are killed, and Spark tells that as failures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

#: Who speaks once a stop has begun: of tasks that were killed, of their interrupted readers, and of their last
#: words to a coordinator or a scheduler that is gone (Spark guide, "Continuous Processing", Caveats). Hadoop's shell
#: tells that a micro-batch was interrupted while it renamed a log entry on a local disk (`readlink` and `chmod`).
#: Whatever the query's own end has to say comes from elsewhere, `sql.execution.streaming`.
_LOGGERS = (
    "org.apache.hadoop.util.Shell",
    "org.apache.spark.executor",
    "org.apache.spark.network",
    "org.apache.spark.rpc",
    "org.apache.spark.scheduler",
    "org.apache.spark.shuffle.streaming",
    "org.apache.spark.TaskContextImpl",
    "org.apache.spark.util.ErrorNotifier",
    "org.apache.spark.sql.execution.streaming.continuous.ContinuousQueuedDataReader$DataReaderThread",
)
#: What a warm-up does otherwise than a query: its sink is none that real-time mode knows, and it reads a state alone.
_WARM_UP = (
    "org.apache.spark.sql.execution.streaming.runtime.RealTimeModeAllowlist",
    "org.apache.spark.sql.execution.streaming.state.StateStoreProvider",
)


def silence(gateway: Any, *more: str) -> None:
    """From now on these loggers, and `more`, say nothing in Spark's Java process, which is about to end.

    Until then they tell real failures; on executors of a cluster they always do (`spark/conf/log4j2.properties`).
    """
    log4j = gateway.jvm.org.apache.logging.log4j
    for name in (*_LOGGERS, *more):
        log4j.core.config.Configurator.setAllLevels(name, log4j.Level.OFF)


@contextmanager
def silenced(gateway: Any) -> Iterator[None]:
    """`silence` for a warm-up, whose end is not Java's: afterwards all loggers speak as they are configured."""
    from py4j.protocol import Py4JError

    silence(gateway, *_WARM_UP)
    try:
        yield
    finally:
        with suppress(Py4JError, OSError):  # Java may be gone
            gateway.jvm.org.apache.logging.log4j.core.config.Configurator.reconfigure()
