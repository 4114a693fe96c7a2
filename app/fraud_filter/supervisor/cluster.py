"""What a query needs of its cluster: task slots, and a disk that driver and executors share."""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fraud_filter.checkpoint.files import CheckpointError, open_files
from fraud_filter.config import Settings, refused
from fraud_filter.monitor.monitor import Monitor
from fraud_filter.query import preflight
from fraud_filter.query.preflight import Inputs
from fraud_filter.spark import session
from fraud_filter.spark.executors import count_slots
from fraud_filter.supervisor.failures import cause
from fraud_filter.supervisor.signals import Stop
from fraud_filter.text.logs import get_logger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = get_logger(__name__)
_LOOK_S, _TELL_S = 0.1, 2.0
#: How long an application waits for all the cores that it asks for, and Spark's default.
_PATIENCE, _DEFAULT = "spark.scheduler.maxRegisteredResourcesWaitingTime", "30s"


def await_executors(spark: SparkSession, settings: Settings, stop: Stop) -> None:
    """Waits for all cores that the application asks for, for so long as Spark would.

    Long tasks stay on the executor where they begin: the first one alone would get them all. Spark itself would wait
    before it opens the session, which takes as long as executors take to start; it is told not to (`session`).
    """
    if settings.spark_master.startswith("local"):
        return
    conf = spark.sparkContext.getConf()
    jvm: Any = spark._jvm
    wanted = session.asked_cores(conf, settings.spark_master)
    until = time.monotonic() + jvm.org.apache.spark.network.util.JavaUtils.timeStringAsSec(
        conf.get(_PATIENCE, _DEFAULT)
    )
    while count_slots(spark) < wanted and time.monotonic() < until and not stop.requested:
        stop.event.wait(_LOOK_S)


def asked_too_few(spark: SparkSession, inputs: preflight.Inputs, settings: Settings) -> bool:
    """Whether the application asked its cluster for fewer cores than the query needs by now.

    What an application asks for is fixed for its life: only a new one can have more.
    """
    conf = spark.sparkContext.getConf()
    return 0 < session.asked_cores(conf, settings.spark_master) < inputs.slots


def await_slots(spark: SparkSession, inputs: preflight.Inputs, settings: Settings, monitor: Monitor, stop: Stop) -> int:
    """Waits until there are enough for `inputs`; only a stop request, or Java's end, ends the wait.

    Returns:
        How many there are.
    """
    slots = count_slots(spark)
    if preflight.lacks_slots(inputs, slots):
        monitor.set_state("waiting-for-slots")
    tell_at = time.monotonic()
    while preflight.lacks_slots(inputs, slots) and not stop.requested:
        if time.monotonic() >= tell_at:
            _log.warning(
                "waiting_for_slots", mode=settings.mode, query=settings.query_name, needed=inputs.slots, granted=slots
            )
            monitor.metrics.set_slots(inputs.slots, slots)
            tell_at += _TELL_S
        stop.event.wait(_LOOK_S)
        slots = count_slots(spark)
    return slots


def check_shared(spark: SparkSession, inputs: Inputs, settings: Settings) -> None:
    """Has every executor write a file below the checkpoint, and looks whether the driver finds them all.

    Without features only the driver writes there, and in local mode the driver is the executor.

    Raises:
        CheckpointError: the file system refuses the driver.
        UsageError: an executor can't write there, or writes to a disk that is not the driver's.
    """
    if not inputs.state_partitions or settings.spark_master.startswith("local"):
        return
    files = open_files(spark, settings.checkpoint)
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
            f"is not shared by the executors of {settings.spark_master}, which keep the state of "
            f"{inputs.query.origin} there: {reason}",
            "give one that driver and executors can all write (a volume that each of them mounts, HDFS, an object "
            "store), or rules without features",
        )  # fmt: skip
