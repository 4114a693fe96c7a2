"""A state of many cards: each of them pays once."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from confluent_kafka import KafkaException, Producer

from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.client import librdkafka_config
from fraud_filter.kafka.refusals import describe_error

#: Of no rule's kind.
_PAYMENT = {
    "amount": 20.0, "currency": "EUR", "merchant": "Corner shop", "merchant_category": "groceries", "country": "DE",
    "card_country": "DE",
}  # fmt: skip
_POLL_S = 0.1


def send_cards(settings: Settings, cards: int) -> None:
    """Sends a payment of each card, by the generator's names: its own payments are of some of them.

    Raises:
        FraudFilterError: the broker does not take them.
    """
    producer, now = Producer(librdkafka_config(settings)), datetime.now(UTC).isoformat()
    try:
        for number in range(1, cards + 1):
            card = f"card-{number:06}"
            value = {**_PAYMENT, "payment_id": f"first-of-{card}", "card_id": card, "created_at": now}
            _send(producer, settings.input_topic, card.encode(), json.dumps(value).encode())
        left = producer.flush(settings.kafka_timeout_s)
    except KafkaException as error:
        raise FraudFilterError(f"topic {settings.input_topic!r} can't be written to: {describe_error(error)}") from None
    if left:
        raise FraudFilterError(
            f"topic {settings.input_topic!r} did not take {left} of {cards} payments within "
            f"{settings.kafka_timeout_s:g} s (setting kafka_timeout_s, FRAUD_KAFKA_TIMEOUT_S)"
        )


def _send(producer: Producer, topic: str, key: bytes, value: bytes) -> None:
    while True:
        try:
            producer.produce(topic, value, key)
            return
        except BufferError:  # more than librdkafka holds: until it has sent some
            producer.poll(_POLL_S)
