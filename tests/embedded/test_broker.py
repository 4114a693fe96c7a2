"""The embedded broker: it answers, it keeps what it is given, and it is gone afterwards, however it ends."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, Producer
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from fraud_filter.errors import FraudFilterError
from lab.harness.broker import HOST, Broker
from lab.harness.workspace import Workspace


def is_listening(address: str) -> bool:
    host, port = address.split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


@retry(
    retry=retry_if_exception_type(AssertionError),
    stop=stop_after_delay(60),
    wait=wait_fixed(0.1),
    reraise=True,
)
def assert_gone(pids: list[int], address: str) -> None:
    # Who lost its parent stays a zombie until the init process looks after it: that is no concern of ours.
    left = [process for process in psutil.process_iter(["status"]) if process.pid in pids]
    assert all(process.info["status"] == psutil.STATUS_ZOMBIE for process in left)
    assert not is_listening(address)


def write(address: str, topic: str, value: bytes, compression: str = "none") -> None:
    producer = Producer({"bootstrap.servers": address, "compression.type": compression})
    producer.produce(topic, key=b"card-1", value=value)
    assert producer.flush(60) == 0


def read(address: str, topic: str) -> Any:
    group = uuid.uuid4().hex
    consumer = Consumer({"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        end = time.monotonic() + 60
        while time.monotonic() < end:
            record = consumer.poll(1)
            if record is not None and record.error() is None:
                return record
    finally:
        consumer.close()
    return None


@pytest.mark.parametrize(("sent", "stored"), [("none", "lz4"), ("lz4", "gzip")])
def test_broker_packs_and_unpacks_lz4(broker: Broker, topics: Any, sent: str, stored: str) -> None:
    """With at.yawk.lz4, the successor of the library that has known holes."""
    topic = topics(partitions=1, compression_type=stored)
    value = b"the same again, " * 4096
    write(broker.address, topic, value, sent)
    assert read(broker.address, topic).value() == value


def test_broker_that_can_not_start_says_why_and_keeps_its_log(
    java_home: Path, kafka_jars: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace()
    data = tmp_path / "data"
    data.mkdir()
    (data / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=somebody-elses\n")
    broker = Broker(workspace, java_home=java_home, jars=kafka_jars, data_dir=data)
    started = time.monotonic()
    with (
        pytest.raises(FraudFilterError, match=r"(?s)ended with exit code 1.*Stored node id 7") as caught,
        workspace,
    ):
        broker.start()
    assert time.monotonic() - started < 50, "an early death is noticed at once"
    assert "\tat " not in str(caught.value), "stack traces stay in the log"
    assert "\tat " in (workspace.logs / "kafka.log").read_text()
    assert str(workspace.logs) in capsys.readouterr().err
    shutil.rmtree(workspace.path)


@contextmanager
def occupied_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen()
        yield listener.getsockname()[1]


class Stack:
    """`python -m fraud_filter stack` as a process of its own, in its own temporary directory."""

    def __init__(self, tmp_path: Path, *arguments: str) -> None:
        self.directory = tmp_path / "tmp"
        self.directory.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fraud_filter", "lab", "broker", *arguments],
            env={**os.environ, "TMPDIR": str(self.directory)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def address(self) -> str:
        """Waits until the stack prints it."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        assert line.startswith("KAFKA_BOOTSTRAP_SERVERS="), self.process.communicate()
        return line.partition("=")[2]

    def children(self) -> list[int]:
        return [child.pid for child in psutil.Process(self.process.pid).children(recursive=True)]


@contextmanager
def running_stack(tmp_path: Path, *arguments: str) -> Iterator[Stack]:
    stack = Stack(tmp_path, *arguments)
    try:
        yield stack
    finally:
        stack.process.kill()
        stack.process.communicate()


def test_stack_stops_cleanly_on_signals_and_keeps_the_data_directory(tmp_path: Path) -> None:
    arguments = ("--port", "0", "--data-dir", str(tmp_path / "data"))
    for number in (signal.SIGTERM, signal.SIGINT):
        with running_stack(tmp_path, *arguments) as stack:
            address, children = stack.address(), stack.children()
            assert children
            if number == signal.SIGTERM:
                write(address, "payments", b"kept")
            assert read(address, "payments").value() == b"kept"
            stack.process.send_signal(number)
            _, errors = stack.process.communicate(timeout=60)
            assert stack.process.returncode == 0
            assert "Traceback" not in errors
            assert_gone(children, address)
            assert not list(stack.directory.iterdir())


def test_stack_whose_broker_dies_fails_and_keeps_the_logs(tmp_path: Path) -> None:
    with running_stack(tmp_path, "--port", "0") as stack:
        stack.address()
        for pid in stack.children():
            psutil.Process(pid).kill()
        _, errors = stack.process.communicate(timeout=60)
        assert stack.process.returncode == 1
        assert "the Kafka broker ended with exit code -9" in errors
        assert "logs are kept in" in errors
        assert list(stack.directory.glob("*/logs/kafka.log"))


def test_stack_refuses_a_port_in_use(tmp_path: Path) -> None:
    with occupied_port() as taken, running_stack(tmp_path, "--port", str(taken)) as stack:
        output, errors = stack.process.communicate(timeout=60)
        assert stack.process.returncode == 2
        assert output == ""
        assert errors == (f"fraud-filter: port {taken} is in use: stop what listens there or choose another --port\n")
