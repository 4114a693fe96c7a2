"""A payment that a program on this machine sends is decided by the stack."""

from __future__ import annotations

import json
import uuid
from typing import Any

from kafka.consumer.group import KafkaConsumer
from kafka.producer.kafka import KafkaProducer
from kafka.structs import TopicPartition

from deployed import Deployed
from waiting import wait_until

PAYMENT = {
    "card_id": "card-1",
    "amount": 9000.0,
    "currency": "EUR",
    "merchant": "m",
    "merchant_category": "travel",
    "country": "DE",
    "card_country": "DE",
    "created_at": "2026-01-01T12:00:00Z",
}


def _decided(stack: Deployed, topic: str, key: str, value: bytes) -> Any:
    """Sends one record and gives the first one of that key on the topic."""
    servers = f"127.0.0.1:{stack.open().value('KAFKA_PORT')}"
    consumer = KafkaConsumer(bootstrap_servers=servers)
    producer = KafkaProducer(bootstrap_servers=servers)
    try:
        consumer.assign([TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)])
        consumer.seek_to_end()
        for partition in consumer.assignment():
            consumer.position(partition)
        producer.send("payments", key=key.encode(), value=value).get(timeout=20)

        def found() -> Any:
            records = [record for some in consumer.poll(timeout_ms=500).values() for record in some]
            return next((record for record in records if record.key == key.encode()), None)

        return wait_until(f"{key} on {topic}", found, every_s=0)
    finally:
        producer.close()
        consumer.close()


def test_a_large_payment_is_flagged_with_the_rule(stack: Deployed) -> None:
    number = str(uuid.uuid4())
    record = _decided(stack, "payments.flagged", number, json.dumps({**PAYMENT, "payment_id": number}).encode())
    flagged = json.loads(record.value)
    assert (flagged["payment_id"], flagged["rules"]) == (number, ["large-amount"])
    assert dict(record.headers)["source.topic"] == b"payments"
