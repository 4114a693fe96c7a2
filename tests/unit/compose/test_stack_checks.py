"""Cores and ports are checked before anything is started; the message has the setting and the numbers."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from fraud_filter.compose.checks import check_cores, check_ports
from fraud_filter.errors import UsageError

SIZE = {"KAFKA_PARTITIONS": "6", "SPARK_WORKER_CORES": "4", "SPARK_WORKERS": "1"}


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield int(listener.getsockname()[1])


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


def test_a_taken_port_is_told_with_its_setting(taken: int) -> None:
    with pytest.raises(UsageError, match=f"KAFKA_PORT={taken}: another program holds this port"):
        check_ports({"KAFKA_PORT": str(taken)}, unused=set(), ours=set())


def test_a_port_that_the_stack_itself_holds_is_accepted(taken: int) -> None:
    check_ports({"KAFKA_PORT": str(taken)}, unused=set(), ours={taken})


def test_grafanas_port_counts_only_where_it_runs(taken: int) -> None:
    check_ports({"GRAFANA_PORT": str(taken)}, unused={"GRAFANA_PORT"}, ours=set())
    with pytest.raises(UsageError, match=f"GRAFANA_PORT={taken}"):
        check_ports({"GRAFANA_PORT": str(taken)}, unused=set(), ours=set())


def test_what_is_no_number_is_named() -> None:
    with pytest.raises(UsageError, match="KAFKA_PORT=http"):
        check_ports({"KAFKA_PORT": "http"}, unused=set(), ours=set())
