"""The filter as a user runs it, and an independent Kafka client (kafka-python) around it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from kafka.consumer.group import KafkaConsumer
from kafka.producer.kafka import KafkaProducer
from kafka.structs import TopicPartition

from fraud_filter.config import Settings, load
from fraud_filter.modes import Mode
from fraud_filter.supervisor.warm_up import configured
from lab.harness.processes import Child

GOOD = {
    "payment_id": "p1", "card_id": "c1", "amount": 12.5, "currency": "EUR", "merchant": "Corner shop",
    "merchant_category": "groceries", "country": "DE", "card_country": "DE", "created_at": "2026-03-01T12:00:00Z",
}  # fmt: skip


#: On a busy machine a start of Spark takes minutes, in seconds.
START_S = 240
#: `fraud-filter` of this checkout.
PROGRAM = (sys.executable, "-m", "fraud_filter")


def call(*words: object, timeout_s: float = START_S, **environment: str) -> subprocess.CompletedProcess[str]:
    """What `fraud-filter WORDS` says and ends with, with these variables beside our own."""
    return subprocess.run(
        [*PROGRAM, *map(str, words)], env={**os.environ, **environment}, capture_output=True, text=True,
        timeout=timeout_s, check=False,
    )  # fmt: skip


def payment(payment_id: str, amount: float, card_id: str = "c1") -> bytes:
    """A payment as it stands on the topic; 5000 and more is flagged by the shipped rules."""
    return json.dumps({**GOOD, "payment_id": payment_id, "amount": amount, "card_id": card_id}).encode()


def create_topic(admin: Any, name: str = "topic", *, partitions: int = 2, **config: str) -> str:
    """Creates a topic of a unique name, with LogAppendTime; settings are given with `_` for `.`. Returns the name."""
    topic = f"{name}-{uuid.uuid4().hex[:8]}"
    configs = {"message.timestamp.type": "LogAppendTime"}
    configs |= {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics({topic: {"num_partitions": partitions, "replication_factor": 1, "configs": configs}})
    admin.wait_for_topics([topic])
    return topic


def partitions_of(consumer: KafkaConsumer, topic: str) -> list[TopicPartition]:
    """All of the topic; a client that has just come knows of none for a moment."""
    until(lambda: bool(consumer.partitions_for_topic(topic)), f"a broker tells of {topic}")
    return [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]


def read_topics(address: str, *topics: str) -> dict[str, list[Any]]:
    """All records of the topics, by topic, those of a partition in their order."""
    consumer = KafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
    partitions = [part for topic in topics for part in partitions_of(consumer, topic)]
    consumer.assign(partitions)
    consumer.seek_to_beginning()
    ends = consumer.end_offsets(partitions)
    found: dict[str, list[Any]] = {topic: [] for topic in topics}
    while any(consumer.position(partition) < ends[partition] for partition in partitions):
        for partition, records in consumer.poll(timeout_ms=500).items():
            found[partition.topic] += records
    consumer.close()
    return found


@dataclass(frozen=True)
class Stage:
    """Three topics of a test's own, a checkpoint of its own, and the address of the broker."""

    address: str
    input: str
    flagged: str
    rejected: str
    directory: Path

    def environment(self, **settings: str) -> dict[str, str]:
        """Environment of a program that works on this stage."""
        return {
            "KAFKA_BOOTSTRAP_SERVERS": self.address,
            "FRAUD_MODE": "micro-batch",
            "SPARK_MASTER": "local[4]",
            "FRAUD_INPUT_TOPIC": self.input,
            "FRAUD_FLAGGED_TOPIC": self.flagged,
            "FRAUD_REJECTED_TOPIC": self.rejected,
            "FRAUD_CHECKPOINT": str(self.directory / "checkpoint"),
            "FRAUD_METRICS_PORT": "0",
            "FRAUD_PROBE_PORT": "0",
            "PYTHONUNBUFFERED": "1",
            **{f"FRAUD_{name.upper()}": value for name, value in settings.items()},
        }

    @property
    def options(self) -> list[str]:
        """Of programs that read the topics."""
        topics = ["--input-topic", self.input, "--flagged-topic", self.flagged, "--rejected-topic", self.rejected]
        return ["--kafka-bootstrap-servers", self.address, *topics]

    def settings(self) -> Settings:
        """The same as settings, for what is called in this process."""
        return load(
            {
                "kafka_bootstrap_servers": self.address,
                "mode": "micro-batch",
                "input_topic": self.input,
                "flagged_topic": self.flagged,
                "rejected_topic": self.rejected,
            }
        )

    def run(self, **settings: str) -> Child:
        """`fraud-filter run`, not yet started."""
        log = self.directory / f"run-{uuid.uuid4().hex[:6]}.log"
        return Child("the filter", [*PROGRAM, "run"], log=log, env=self.environment(**settings))

    def send(self, values: Iterable[tuple[str, bytes | None]]) -> list[tuple[int, int]]:
        """Writes (key, value) records; returns partition and offset of each."""
        producer = KafkaProducer(bootstrap_servers=self.address, acks="all")
        sent = [producer.send(self.input, key=key.encode(), value=value) for key, value in values]
        placed = [future.get(timeout=60) for future in sent]
        producer.close()
        return [(record.partition, record.offset) for record in placed]

    def written(self) -> dict[str, list[Any]]:
        """All records of the output topics, by topic."""
        return read_topics(self.address, self.flagged, self.rejected)

    def committed(self) -> dict[int, int]:
        """Next offset to read by partition, as the newest committed entry of the checkpoint has it."""
        checkpoint = self.directory / "checkpoint"
        newest = max((int(file.name) for file in checkpoint.glob("commits/[0-9]*")), default=None)
        entry = "{}" if newest is None else (checkpoint / f"offsets/{newest}").read_text().splitlines()[-1]
        return {int(number): at for number, at in json.loads(entry).get(self.input, {}).items()}

    def flagged_ids(self) -> set[str]:
        """Of the payments that are flagged."""
        return {json.loads(record.value)["payment_id"] for record in self.written()[self.flagged]}


def in_mode(spark: Any, mode: Mode, settings: Settings) -> AbstractContextManager[None]:
    """Within it the shared session is as the mode has its own, but for what only a start of Java sets."""
    conf = mode.session_conf(settings).items()
    return configured(spark, {name: value for name, value in conf if name.startswith("spark.sql.")})


StageMaker = Callable[[Path], Stage]


def until(holds: Callable[[], bool], what: str, timeout_s: float = 60) -> None:
    """Waits for a condition."""
    end = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < end, f"not within {timeout_s} s: {what}"
        time.sleep(0.05)


def wait_until(holds: Callable[[], bool], what: str, child: Child, timeout_s: float = START_S) -> None:
    """Waits for a condition while the program runs; fails with the end of its log."""
    end = time.monotonic() + timeout_s
    while not holds():
        child.raise_if_dead()
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout_s} s: {what}; the log ends\n" + "\n".join(child.tail(15)))
        time.sleep(0.3)


def refusal(program: Child, code: int) -> str:
    """What the program says of its end, for which it ends with this exit code."""
    assert program.wait(180) == code, program.tail()
    (message,) = [line for line in program.tail(50) if line.startswith("fraud-filter:")]
    return message


class Server(ABC):
    """A program that tests need beside the filter: `with` gives one that answers, and stops it."""

    def __init__(self, child: Child) -> None:
        self.child = child

    @abstractmethod
    def is_up(self) -> bool:
        """Whether it answers."""

    def __enter__(self) -> Self:
        self.child.start()
        try:
            wait_until(self.is_up, self.child.name, self.child, 180)
        except BaseException:
            self.child.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.child.stop()
