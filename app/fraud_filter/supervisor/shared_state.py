"""The state of features lies below the checkpoint, and executors write it: they must reach the driver's file system."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import TYPE_CHECKING

from fraud_filter.checkpoint.files import CheckpointError, open_files
from fraud_filter.config import Settings, refused
from fraud_filter.query.preflight import Inputs
from fraud_filter.spark.executors import count_slots
from fraud_filter.supervisor.failures import cause

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_shared(spark: SparkSession, inputs: Inputs, settings: Settings) -> None:
    """Has every executor write a file below the checkpoint, and looks whether the driver finds them all.

    Without features only the driver writes there, and in local mode the driver is the executor.

    Raises:
        CheckpointError: the file system refuses the driver.
        UsageError: an executor can't write there, or writes to a disk that is not the driver's.
    """
    if not inputs.state_partitions or settings.spark_master.startswith("local"):
        return
    files = open_files(spark, settings)
    trial = f".executors-write-{uuid.uuid4().hex}"
    slots = count_slots(spark)  # as many tasks start at the same time, so that every executor gets some
    try:
        rows = spark.range(0, slots, 1, slots).selectExpr("CAST(id AS STRING)")
        rows.write.mode("overwrite").text(f"{files.qualified}/{trial}")
        missing = slots - sum(name.startswith("part-") for name in files.names(trial))
        reason = f"the driver does not find {missing} of {slots} files that they wrote" if missing else ""
    except CheckpointError:
        raise
    except Exception as error:
        reason = cause(str(error))
    finally:
        with suppress(CheckpointError):
            files.remove(trial)
    if reason:
        raise refused(
            "checkpoint", settings.checkpoint,
            f"is not shared by the executors of {settings.spark_master}, which keep the state of the features of "
            f"{inputs.rules.path} there: {reason}",
            "give one that driver and executors can all write (a volume that each of them mounts, HDFS, an object "
            "store), or rules without features",
        )  # fmt: skip
