"""A Java with Spark's and Hadoop's classes, without a Spark session: enough to reach a checkpoint's file system."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.config import Settings
from fraud_filter.home import HOME
from fraud_filter.java import gateway

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

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # nothing of it is reached from elsewhere
    log4j = HOME / "spark/conf/log4j2.properties"
    conf = SparkConf().set("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={log4j.as_uri()}")
    conf.setAll(list(settings.spark_conf.items()))
    java = gateway.launch(conf, keep_open)
    try:
        jvm = java.jvm
        hadoop = jvm.org.apache.spark.deploy.SparkHadoopUtil.get().newConfiguration(jvm.org.apache.spark.SparkConf())
        yield CheckpointFiles(jvm, java, hadoop, location)
    finally:
        java.shutdown()
        java.proc.stdin.close()  # Java ends at the end of its input
        java.proc.wait(_STOP_S)
