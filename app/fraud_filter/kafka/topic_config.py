"""A topic's configuration, as the brokers tell it."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]  # it is public

from fraud_filter.config import Settings


def read_config(admin: AdminClient, settings: Settings, topic: str) -> dict[str, str | None]:
    """All settings of a topic that exists, those that are the broker's defaults included; values as Kafka has them.

    Raises:
        KafkaException: the brokers do not tell within `kafka_timeout_s` seconds, or not this user.
    """
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    [answer] = admin.describe_configs([resource], request_timeout=settings.kafka_timeout_s).values()
    return {name: entry.value for name, entry in answer.result().items()}
