"""What tests of faults need: payments that keep coming, a look at how far they were decided, the filter's metrics."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any

import psutil
import requests
from kafka.consumer.group import KafkaConsumer
from kafka.producer.kafka import KafkaProducer
from prometheus_client.parser import text_string_to_metric_families

from fraud_filter import schema as layout
from lab.harness.processes import Child, kill_family
from running import Stage, partitions_of, payment

#: A client comes back as soon as the broker does, and not up to half a minute later.
_PATIENT = {"reconnect_backoff_max_ms": 1000}
#: More than a fetch waits without records (Kafka's consumer, fetch.max.wait.ms), in seconds.
_FETCH_S = 1.0
#: What Spark says of short epochs on a busy machine.
_LATE_EPOCH = "logger=ProcessingTimeExecutor Current batch is falling behind"


class Feed:
    """Sends payments at a steady rate to all partitions in turn, every second one to be flagged; waits out outages."""

    def __init__(self, stage: Stage, *, rate: int = 40, partitions: int = 2) -> None:
        self.partitions = partitions
        self._stage = stage
        self._pause_s = 1 / rate
        self._stop = threading.Event()
        self._sent: list[Any] = []
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def __enter__(self) -> Feed:
        self._producer = KafkaProducer(
            bootstrap_servers=self._stage.address, acks="all", metadata_max_age_ms=1000, max_block_ms=60_000, **_PATIENT
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> int:
        """Ends it; returns how many payments the broker has taken, and fails if one was refused."""
        if not self._stop.is_set():
            self._stop.set()
            self._thread.join(60)
            self._placed = [future.get(timeout=60) for future in self._sent]
            self._producer.close()
        return len(self._placed)

    def _run(self) -> None:
        while not self._stop.wait(self._pause_s):
            number = len(self._sent)
            known = len(self._producer.partitions_for(self._stage.input))  # new ones show after a second
            partition = number // 2 % min(self.partitions, known)
            card = f"c{partition}"  # a partition's own, as the key of features has to be
            value = payment(f"p{number}", 6000 if number % 2 else 6, card)
            self._sent.append(self._producer.send(self._stage.input, value, key=card.encode(), partition=partition))


class Decisions:
    """How far the flagged topic shows the input to be decided, by input partition."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._consumer = KafkaConsumer(bootstrap_servers=stage.address, enable_auto_commit=False, **_PATIENT)
        self._assign()
        self._newest: dict[int, int] = {}

    def _assign(self) -> None:
        self._consumer.assign(partitions_of(self._consumer, self._stage.flagged))
        self._consumer.seek_to_beginning()

    def newest(self) -> dict[int, int]:
        """The highest input offset that was decided, by input partition."""
        while found := self._consumer.poll(timeout_ms=200, max_records=2000):
            for record in (record for records in found.values() for record in records):
                headers = dict(record.headers)
                number, offset = (int(headers[name]) for name in (layout.HEADER_PARTITION, layout.HEADER_OFFSET))
                self._newest[number] = max(offset, self._newest.get(number, -1))
            if sum(map(len, found.values())) < 50:
                break
        return self._newest

    def ends(self) -> dict[int, int]:
        """The ends of the input's partitions now."""
        parts = partitions_of(self._consumer, self._stage.input)
        return {part.partition: end for part, end in self._consumer.end_offsets(parts).items()}

    def fresh(self, ends: dict[int, int]) -> bool:
        """Whether in each partition of `ends` something at or after that offset was decided."""
        newest = self.newest()
        return all(newest.get(number, -1) >= end for number, end in ends.items())

    def close(self) -> None:
        self._consumer.close()


def metrics(port: int, *labels: str) -> dict[str, float]:
    """The filter's metrics by name and, where it has them, the labels `reason` and `state`, or the given ones."""
    found: dict[str, float] = {}
    text = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=30).text
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            label = next((sample.labels[name] for name in labels or ("reason", "state") if sample.labels.get(name)), "")
            found[f"{sample.name}/{label}" if label else sample.name] = sample.value
    return found


def java_of(program: Child, timeout_s: float = 60) -> psutil.Process:
    """Spark's Java process below the program."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        for child in psutil.Process(program.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # one that has just ended
                if child.name() == "java":
                    return child
        time.sleep(0.1)
    raise AssertionError("no Java process; the log ends\n" + "\n".join(program.tail(15)))


def events(program: Child, kind: str) -> list[str]:
    """The lines `event=kind` of the log."""
    return [line for line in program.tail(5000) if f"event={kind} " in line]


def said_while_stopping(program: Child) -> list[str]:
    """All lines after the last `event=stopping` that are no events of the filter's own."""
    lines = program.tail(20_000)
    *_, began = (number for number, line in enumerate(lines) if "event=stopping " in line)
    return [line for line in lines[began:] if not (" level=INFO event=" in line or _LATE_EPOCH in line)]


def kill_all(program: Child) -> None:
    """Kills Python and Java at one moment."""
    kill_family(program)


def suspend(java: psutil.Process) -> None:
    """Stops it, and returns when none of its fetches waits at the broker, which would still be given new records."""
    java.suspend()
    time.sleep(_FETCH_S)  # nothing tells that a fetch waits
