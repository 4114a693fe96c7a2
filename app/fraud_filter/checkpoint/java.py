"""A Java with Spark's and Hadoop's classes, without a Spark session: enough to reach a checkpoint's file system."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError
from fraud_filter.home import HOME

_STOP_S = 10


@contextmanager
def open_checkpoint(location: str, settings: Settings, keep_open: int | None = None) -> Iterator[CheckpointFiles]:
    """The files of the checkpoint at `location`; `settings.spark_conf` may hold `spark.hadoop.*` for its file system.

    Args:
        keep_open: a file descriptor that the Java process is to hold, too.

    Raises:
        FraudFilterError: Java does not start, or no such file system is known.
    """
    from pyspark import SparkConf
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # nothing of it is reached from elsewhere
    log4j = HOME / "spark/conf/log4j2.properties"
    conf = SparkConf().set("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={log4j.as_uri()}")
    conf.setAll(list(settings.spark_conf.items()))
    how = {"start_new_session": True, "pass_fds": () if keep_open is None else (keep_open,)}
    try:
        gateway = launch_gateway(conf, how)  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as error:
        raise FraudFilterError(f"Java does not start: {error}; is Java 17 or 21 in JAVA_HOME or on the PATH?") from None
    try:
        jvm = gateway.jvm
        hadoop = jvm.org.apache.spark.deploy.SparkHadoopUtil.get().newConfiguration(jvm.org.apache.spark.SparkConf())
        yield CheckpointFiles(jvm, gateway, hadoop, location)
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()  # Java ends at the end of its input
        gateway.proc.wait(_STOP_S)
