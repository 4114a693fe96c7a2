"""Spark's Java process, and the certainty that it ends: killing it is what frees a call that hangs in it."""

from __future__ import annotations

import logging
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from fraud_filter.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)
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
        _log.warning("event=java_killed after_s=%g", seconds)
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
