"""The reason why no broker can be used is the true one."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fraud_filter.config import load
from fraud_filter.kafka import refusals
from fraud_filter.kafka.consumer import find_partitions, open_consumer
from fraud_filter.kafka.refusals import NoBrokerError
from serving import Quiet, serve


def _refusal(address: str, **settings: str) -> str:
    asked = load({"kafka_bootstrap_servers": address, "kafka_timeout_s": "1", **settings})
    with open_consumer(asked) as consumer, pytest.raises(NoBrokerError) as told:
        find_partitions(consumer, asked, ["input_topic"])
    return str(told.value)


@contextmanager
def _silent() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_an_unknown_host_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "_ASK_S", 60)  # a name server may take its time
    assert "Failed to resolve 'no-such-host.invalid:9092'" in _refusal("no-such-host.invalid:9092")


def test_a_refused_connection_is_named() -> None:
    assert "Connection refused" in _refusal("127.0.0.1:1")


def test_a_web_server_is_no_broker() -> None:
    with serve(Quiet) as address:
        assert f"something listens at {address} and does not answer as a Kafka broker" in _refusal(address)


def test_a_listener_without_a_word_is_no_broker() -> None:
    with _silent() as address:
        assert f"something listens at {address} and does not answer as a Kafka broker" in _refusal(address)


def test_tls_on_a_port_without_it_is_named() -> None:
    with serve(Quiet) as address:
        told = _refusal(address, kafka_security_protocol="SSL")
    assert "wrong version number" in told
    assert "refused login" not in told
