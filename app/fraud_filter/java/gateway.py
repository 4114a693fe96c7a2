"""Starts a Java with Spark's classes, and leaves none behind when we are interrupted meanwhile."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from fraud_filter.errors import FraudFilterError

if TYPE_CHECKING:
    from pyspark import SparkConf

_LOOK_S = 0.05
#: By these PySpark finds a Java that runs already (`pyspark.java_gateway`).
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"


class LaunchStoppedError(FraudFilterError):
    """Somebody wished to stop before Java had started."""


def launch(conf: SparkConf, keep_open: int | None = None, stop_requested: Callable[[], bool] = lambda: False) -> Any:
    """Starts it; its gateway (py4j) is returned, whose `proc` is the process.

    PySpark starts it by a fork that runs Python in the child, which crashes now and then where other threads hold
    Kafka clients; and of a start that is interrupted it loses the process. So it is started here.

    Args:
        keep_open: a file descriptor that the process is to hold, too.
        stop_requested: asked again and again while Java starts, which takes seconds; it is killed when this is true.

    Raises:
        LaunchStoppedError: so it was.
        FraudFilterError: it does not start.
    """
    with TemporaryDirectory() as directory, ThreadPoolExecutor(1, "java-start") as aside:
        connection = Path(directory) / "connection"
        # An interrupt in the main thread does not lose the process.
        starting = aside.submit(_start, conf, connection, keep_open)
        try:
            process = starting.result()
            while not connection.exists():
                if process.poll() is not None:
                    raise FraudFilterError(_why(conf))
                if stop_requested():
                    raise LaunchStoppedError("stopped while Java starts")
                time.sleep(_LOOK_S)
            gateway = _join(connection.read_bytes())
        except BaseException:
            with suppress(OSError):
                process = starting.result()
                process.kill()
                process.wait()
            raise
    gateway.proc = process
    return gateway


def _start(conf: SparkConf, connection: Path, keep_open: int | None) -> subprocess.Popen[bytes]:
    """Java ends at the end of its input, that is, with us. It writes to the file `told` where it listens."""
    from pyspark.find_spark_home import _find_spark_home

    options = [word for name, value in conf.getAll() for word in ("--conf", f"{name}={value}")]
    # PySpark's own variable: the images name Spark's properties in it.
    options += shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    # In a new session: a signal to our process group must reach Java through us, after the query's stop.
    return subprocess.Popen(
        [f"{_find_spark_home()}/bin/spark-submit", *options],
        env={**os.environ, "SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection)},
        stdin=subprocess.PIPE, start_new_session=True, pass_fds=() if keep_open is None else (keep_open,),
    )  # fmt: skip


def _join(connection: bytes) -> Any:
    """The gateway of a Java, by its port and its secret, each as Java's `DataOutputStream` writes it."""
    from pyspark.java_gateway import launch_gateway

    os.environ[_PORT], os.environ[_SECRET] = str(int.from_bytes(connection[:4], "big")), connection[8:].decode()
    try:
        return launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        del os.environ[_PORT], os.environ[_SECRET]


def _why(conf: SparkConf) -> str:
    """Why there is no gateway: what Java or Spark's scripts wrote themselves stands above."""
    given = f"spark_master {conf.get('spark.master')!r} and spark_conf" if conf.get("spark.master") else "spark_conf"
    return (
        f"Spark's Java process ended at its start; its own words are above (it needs Java 17 or 21, in "
        f"JAVA_HOME or on the PATH, and was started with {given})"
    )
