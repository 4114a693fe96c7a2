"""Cores are checked before anything is started; the message has the setting and the numbers."""

from __future__ import annotations

import pytest

from fraud_filter.compose.checks import check_cores
from fraud_filter.errors import UsageError

SIZE = {"KAFKA_PARTITIONS": "6", "SPARK_WORKER_CORES": "4", "SPARK_WORKERS": "1"}


@pytest.mark.parametrize("mode", ["continuous", "real-time"])
def test_too_few_cores_are_told_with_both_numbers(mode: str) -> None:
    with pytest.raises(UsageError, match=rf"KAFKA_PARTITIONS=6 needs 6 cores in {mode} mode, .* gives 4: raise"):
        check_cores(SIZE, mode)


@pytest.mark.parametrize(("mode", "workers"), [("micro-batch", 1), ("async-progress", 1), ("continuous", 2)])
def test_enough_cores_are_accepted(mode: str, workers: int) -> None:
    check_cores({**SIZE, "SPARK_WORKERS": str(workers)}, mode)


def test_the_state_of_features_takes_cores_too() -> None:
    size = {**SIZE, "KAFKA_PARTITIONS": "3"}
    check_cores(size, "real-time", 1)
    words = "KAFKA_PARTITIONS=3 and FRAUD_VELOCITY_PARTITIONS=2 need 5 cores in real-time mode, .* gives 4: raise"
    with pytest.raises(UsageError, match=words):
        check_cores(size, "real-time", 2)


@pytest.mark.parametrize("text", ["", "two", "0", "-1", "1.5"])
def test_a_size_that_is_no_number_is_named(text: str) -> None:
    with pytest.raises(UsageError, match=f"SPARK_WORKER_CORES={text} is not accepted"):
        check_cores({**SIZE, "SPARK_WORKER_CORES": text}, "continuous")
