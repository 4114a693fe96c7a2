"""Spark's Java process: every call that hangs in it ends, because the process is killed."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from fraud_filter.spark import session
from fraud_filter.text.logs import get_logger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = get_logger(__name__)
_DUMP_S = 1.0


class Java:
    """The process behind a gateway (py4j) of `session.launch`."""

    def __init__(self, gateway: Any) -> None:
        self.gateway = gateway
        self.overdue = False
        self._process = gateway.proc

    @property
    def returncode(self) -> int | None:
        """None while it runs; negative when a signal ended it."""
        code: int | None = self._process.poll()
        return code

    def kill(self) -> None:
        """Ends it at once; calls that wait for it fail."""
        self._process.kill()

    @contextmanager
    def killed_after(self, seconds: float, *, dump: bool = False) -> Iterator[None]:
        """Kills it, and sets `overdue`, when the block takes longer; with `dump` its threads are in the log then."""
        timer = threading.Timer(seconds, self._late, (seconds, dump))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _late(self, seconds: float, dump: bool) -> None:
        self.overdue = True
        if dump:
            self._process.send_signal(signal.SIGQUIT)  # Java writes its threads to its output, which is ours
            time.sleep(_DUMP_S)
        _log.warning("java_killed", after_s=seconds)
        self.kill()

    def end(self, spark: SparkSession | None, seconds: float) -> None:
        """Stops Spark and waits for the process' end; after `seconds` it is killed. PySpark forgets it."""
        from py4j.protocol import Py4JError

        with self.killed_after(seconds):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # PySpark's word on a Java that is gone
                for stop in (*([spark.stop, spark.sparkContext.stop] if spark else []), self.gateway.shutdown):
                    # The context's second stop frees what PySpark keeps when Java did not answer the first.
                    with suppress(Py4JError, OSError, AttributeError, AssertionError):
                        stop()
            with suppress(OSError):
                self._process.stdin.close()  # Java ends at the end of its input
            self._process.wait()
        session.forget()


#: Who speaks once a stop has begun: of tasks that were killed, of interrupted readers and cleaners, of last
#: words to a coordinator or a scheduler that is gone (Spark guide, "Continuous Processing", Caveats). Hadoop's shell
#: tells that a micro-batch was interrupted while it renamed a log entry on a local disk (`readlink` and `chmod`).
#: Whatever the query's own end has to say comes from elsewhere, `sql.execution.streaming`.
_LOGGERS = (
    "org.apache.hadoop.util.Shell",
    "org.apache.spark.ContextCleaner",
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
