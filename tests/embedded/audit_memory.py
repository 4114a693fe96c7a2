"""How much memory the audit takes of few and of many payments; run by hand, minutes for each ten million.

    python tests/embedded/audit_memory.py 2000000 20000000

One payment in a hundred is flagged, every tenth of these twice. Prints peak memory and seconds of each audit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from fraud_filter import schema as layout
from fraud_filter.java.jars import KAFKA_LOCK, resolve_jars
from fraud_filter.java.runtime import require_java
from lab.harness.broker import Broker
from lab.harness.workspace import Workspace
from running import create_topic, payment

_PARTITIONS = 4
_FLAGGED_EVERY = 100
_TWICE_EVERY = 1000
_BEGAN_MS = 1_700_000_000_000


def _produce(producer: Producer, topic: str, value: bytes, partition: int, **more: Any) -> None:
    while True:
        try:
            return producer.produce(topic, value, b"card", partition=partition, **more)
        except BufferError:
            producer.poll(1)


def _fill(address: str, count: int, topic: str, flagged: str) -> None:
    """Payments whose times follow from their offsets, and the decisions on them in other partitions."""
    large, small = payment("p1", 6000), payment("p2", 20)
    decision = json.dumps({**json.loads(large), layout.RULES_FIELD: ["large-amount"]}).encode()
    producer = Producer(
        {"bootstrap.servers": address, "compression.type": "lz4", "linger.ms": 20, "enable.idempotence": True,
         "queue.buffering.max.messages": 500_000, "batch.num.messages": 50_000, "batch.size": 900_000}
    )  # fmt: skip
    for offset in range(count // _PARTITIONS):
        is_flagged = offset % _FLAGGED_EVERY == 0
        for partition in range(_PARTITIONS):
            at_ms = _BEGAN_MS + offset
            _produce(producer, topic, large if is_flagged else small, partition, timestamp=at_ms)
            for _ in range(is_flagged + (offset % _TWICE_EVERY == 0)):
                source = {
                    layout.HEADER_TOPIC: topic,
                    layout.HEADER_PARTITION: str(partition),
                    layout.HEADER_OFFSET: str(offset),
                    layout.HEADER_TIMESTAMP: str(at_ms),
                }
                _produce(producer, flagged, decision, (partition + 1) % 2, headers=list(source.items()))
        producer.poll(0)
    producer.flush()


def _audit(address: str, topic: str, flagged: str, rejected: str) -> tuple[str, dict[str, Any]]:
    """What it took, and the result."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "audit.json"
        argv = [
            *(sys.executable, "-m", "fraud_filter", "audit", "--kafka-bootstrap-servers", address, "--json", str(file)),
            *("--input-topic", topic, "--flagged-topic", flagged, "--rejected-topic", rejected),
        ]
        began = time.monotonic()
        child = subprocess.Popen(argv, stdout=subprocess.DEVNULL, env={**os.environ, "FRAUD_ENV_FILE": os.devnull})
        _, status, usage = os.wait4(child.pid, 0)
        if os.waitstatus_to_exitcode(status):
            sys.exit(f"the audit ended with {os.waitstatus_to_exitcode(status)}")
        result: dict[str, Any] = json.loads(file.read_text())
        took = f"{time.monotonic() - began:.0f} s, {usage.ru_utime + usage.ru_stime:.0f} s of CPU"
        return f"peak {usage.ru_maxrss / 1024:.0f} MiB, {took}", result


def main() -> None:
    """Audits topics of each size that is given."""
    from kafka.admin import KafkaAdminClient

    with Workspace("audit-memory-") as workspace:
        broker = Broker(workspace, java_home=require_java(), jars=resolve_jars(KAFKA_LOCK))
        with broker:
            admin = KafkaAdminClient(bootstrap_servers=broker.address)
            for count in map(int, sys.argv[1:]):
                config = {"message.timestamp.type": "CreateTime", "retention.ms": "-1"}
                topic = create_topic(admin, f"payments-{count}", partitions=_PARTITIONS, **config)
                flagged = create_topic(admin, f"flagged-{count}", partitions=2, **config)
                rejected = create_topic(admin, f"rejected-{count}", partitions=1, **config)
                began = time.monotonic()
                _fill(broker.address, count, topic, flagged)
                print(f"{count:,} payments made in {time.monotonic() - began:.0f} s", flush=True)  # noqa: T201
                took, result = _audit(broker.address, topic, flagged, rejected)
                found = {name: result[name] for name in ("payments", "expected", "duplicated", "lost", "unexpected")}
                print(f"{count:,} payments: {took}, {found}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
