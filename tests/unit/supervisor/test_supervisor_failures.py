"""Failures in words, lost records in numbers, how long a restart waits and when the program gives up."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from fraud_filter import config
from fraud_filter.errors import EXIT_DATA_LOSS, EXIT_GAVE_UP, UsageError
from fraud_filter.kafka.refusals import NoBrokerError
from fraud_filter.lock.checkpoint_lock import checkpoint_lock
from fraud_filter.monitor.health import Streak
from fraud_filter.supervisor.failures import DataLossError, GaveUpError, RestartableError, back_off_s, explain_failure
from fraud_filter.supervisor.losses import find_losses
from fraud_filter.supervisor.written import WrittenDecisions

SETTINGS = config.load({"checkpoint": "/data/checkpoint", "mode": "continuous"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Query x terminated\n\nCaused by: java.lang.AssertionError: assertion failed: There "
            "are [2] sources in the checkpoint offsets and now there are [1] sources",
            "setting checkpoint (--checkpoint, FRAUD_CHECKPOINT)",
        ),
        ("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log.", "another query works on the checkpoint"),
        ("x\nCaused by: org.apache.spark.sql.AnalysisException: no such column", "Spark refuses the query in contin"),
        ("[UNSUPPORTED_FEATURE.STORE_BACKEND_NOT_SUPPORTED_FOR_TWS] The feature", "Spark refuses the query in contin"),
        ("x\nCaused by: org.apache.spark.sql.catalyst.ExtendedAnalysisException: no", "no"),
        ('Cannot invoke "WatermarkTracker.currentWatermark()" because "x.watermarkTracker()" is null', "another query"),
    ],
)
def test_what_no_restart_cures_is_bad_input(text: str, said: str) -> None:
    error = explain_failure(Exception(text), SETTINGS)
    assert isinstance(error, UsageError)
    assert said in str(error)
    assert "\n" not in str(error)


def test_other_failures_are_tried_again_with_the_innermost_reason() -> None:
    error = explain_failure(Exception("top\n\tat x\nCaused by: a.B: outer\nCaused by: a.C: inner\n\tat y"), SETTINGS)
    assert isinstance(error, RestartableError)
    assert error.reason == "query-failed"
    assert str(error) == "the query failed in continuous mode: a.C: inner"


@pytest.mark.parametrize(
    "error",
    [
        Py4JNetworkError("gone"),
        ConnectionRefusedError(),
        BrokenPipeError(),
        Py4JError("An error occurred while calling o42.awaitTermination"),
        Py4JError("org.apache.spark.sql does not exist in the JVM"),
    ],
)
def test_a_java_that_is_gone_is_told_as_such(error: Exception) -> None:
    told = explain_failure(error, SETTINGS)
    assert isinstance(told, RestartableError)
    assert told.reason == "java-gone"


def test_lost_records_by_partition() -> None:
    bounds = {0: (5, 20), 1: (10, 20), 2: (0, 3), 3: (0, 8)}
    assert find_losses({0: 5, 1: 4, 2: 7, 3: 8, 4: 9}, bounds) == {1: (4, 10), 2: (7, 7), 4: (9, 9)}
    assert find_losses({}, bounds) == {}
    assert DataLossError("x").exit_code == EXIT_DATA_LOSS == 3


def test_a_checkpoint_elsewhere_has_no_file_to_lock() -> None:
    with checkpoint_lock(config.load({"checkpoint": "s3a://bucket/checkpoint"})) as lock:
        assert lock.descriptor is None


#: What Spark 4.2 said of a batch that was planned, not committed, and whose records were then removed.
LOST = """[STREAM_FAILED] Query [id = 2] terminated with exception: Some data may have been lost because they are not \
available in Kafka any more;
either the data was aged out by Kafka or the topic may have been deleted before all the data in the
topic was processed.
If you don't want your streaming query to fail on such cases, set the source option failOnDataLoss to false.
Reason: Could not read records in offset [0, 10) for topic partition payments-0
with consumer group spark-kafka-source-b990-executor.
Caused by: org.apache.kafka.clients.consumer.OffsetOutOfRangeException: Fetch position is out of range
"""


def test_losses_that_spark_finds_are_no_case_for_a_restart() -> None:
    error = explain_failure(Exception(LOST), SETTINGS)
    assert isinstance(error, DataLossError)
    assert "Could not read records in offset [0, 10) for topic partition payments-0;" in str(error)
    assert "fail_on_data_loss" in str(error)
    accepted = explain_failure(Exception(LOST), config.load({"fail_on_data_loss": False}))
    assert isinstance(accepted, RestartableError)


def test_without_a_broker_it_is_not_said_that_nothing_is_decided() -> None:
    """A query that starts then would write decisions again."""
    away = config.load({"kafka_bootstrap_servers": "127.0.0.1:1", "kafka_timeout_s": 1})
    with pytest.raises(NoBrokerError):
        WrittenDecisions(away).follow("", {0: 0})


# -- how long the program waits before it starts the query again, and when it gives up


def back_off(failures: int, cause: str = "it failed", **changes: float) -> float:
    settings = config.load({"restart_backoff_s": 8, "max_restarts": 3} | changes)
    return back_off_s(settings, failures, RestartableError("query-failed", cause))


def test_back_offs_double_with_jitter_up_to_the_limit() -> None:
    for failures, least in enumerate((8, 16, 30, 30, 30), start=1):
        assert least <= back_off(failures, max_restarts=2000) <= min(30, least + 4)
    assert back_off(2000, max_restarts=2000) == 30
    assert back_off(1, restart_backoff_s=60) == 60  # the first one is the longest


def test_it_gives_up_after_max_restarts_and_tells_the_last_reason() -> None:
    assert back_off(3)
    with pytest.raises(GaveUpError, match=r"after 3 restarts in a row without progress.*; the last: end 3") as gave_up:
        back_off(4, "end 3")
    assert gave_up.value.exit_code == EXIT_GAVE_UP == 4


def test_progress_lets_the_count_begin_anew() -> None:
    streak = Streak()
    progress = (False, False, True, False, False, True, False, False)
    counts = [streak.fail("it failed", waits_for_others=False, has_progressed=made) for made in progress]
    assert counts == [1, 2, 1, 2, 3, 1, 2, 3]


def test_no_restart_when_none_is_wanted() -> None:
    with pytest.raises(GaveUpError):
        back_off(1, max_restarts=0)
