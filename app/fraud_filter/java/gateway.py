"""Starts a Java with Spark's classes, and leaves none behind when we are interrupted meanwhile."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

import psutil

from fraud_filter.errors import FraudFilterError
from fraud_filter.java.runtime import find_java

if TYPE_CHECKING:
    from pyspark import SparkConf

_LOOK_S = 0.05


def launch(conf: SparkConf, keep_open: int | None = None) -> Any:
    """Starts it; its gateway (py4j) is returned, whose `proc` is the process.

    A Java that runs ends at the end of its input, that is, with us. One that starts is killed when Ctrl-C comes:
    PySpark then removes the directory in which Java tells its port, and Java would fail there and live on.

    Args:
        keep_open: a file descriptor that the process is to hold, too.

    Raises:
        FraudFilterError: it does not start.
    """
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    # A session of its own: a signal to our process group must reach Java through us, after the query's stop.
    how = {"start_new_session": True, "pass_fds": () if keep_open is None else (keep_open,)}
    before = set(psutil.Process().children())
    with ThreadPoolExecutor(1, "java-start") as aside:  # an exception in the main thread does not lose the process
        starting = aside.submit(launch_gateway, conf, how)
        try:
            return starting.result()
        except PySparkRuntimeError:
            raise FraudFilterError(_why(conf)) from None
        except BaseException:
            _end(starting, before)
            raise


def _end(starting: Future[Any], before: set[psutil.Process]) -> None:
    """Ends what is starting, whatever stage it has reached."""
    starting.cancel()
    while not starting.done():
        for child in set(psutil.Process().children()) - before:
            child.kill()
        wait([starting], _LOOK_S)
    if not starting.cancelled() and starting.exception() is None:
        starting.result().proc.kill()


def _why(conf: SparkConf) -> str:
    """Why there is no gateway: what Java or Spark's scripts wrote themselves stands above."""
    if find_java(lambda _: None) is None:
        return "Java does not start: there is no Java 17 or 21 in JAVA_HOME or on the PATH"
    given = f"spark_master {conf.get('spark.master')!r} and spark_conf" if conf.get("spark.master") else "spark_conf"
    return f"Spark's Java process ended at its start; its own words are above (it was started with {given})"
