"""What a query run died of, told as the error to act on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fraud_filter.checkpoint.files import open_files
from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError
from fraud_filter.supervisor.failures import DataLossError, RestartableError, explain_failure
from fraud_filter.supervisor.java import Java
from fraud_filter.supervisor.losses import examine, require_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def explain_end(error: Exception, java: Java, spark: SparkSession | None, settings: Settings) -> Exception:
    """The error to act on; a failed query is told as the loss of records that it may have died of."""
    from py4j.protocol import Py4JError

    if isinstance(error, RestartableError) and error.reason != "query-failed":
        return error
    if java.overdue:
        return RestartableError("start-hung", f"the start took longer than {settings.start_timeout_s:g} s")
    if java.returncode is not None and not isinstance(error, FraudFilterError):
        return RestartableError("java-gone", f"Spark's Java process ended with code {java.returncode}")
    if isinstance(error, RestartableError | DataLossError) and spark:  # the second names the offsets less well
        try:
            with java.killed_after(settings.kafka_timeout_s * 2):
                _require_all(spark, settings)
        except DataLossError as loss:
            return loss
        except (FraudFilterError, Py4JError, OSError):
            return error
    if isinstance(error, Py4JError | OSError):
        return explain_failure(error, settings)
    return error


def _require_all(spark: SparkSession, settings: Settings) -> None:
    if settings.source == "kafka" and settings.fail_on_data_loss:
        require_all(examine(open_files(spark, settings), settings), settings)
