"""Topics whose records the brokers stamp (LogAppendTime): latency is measured between such times alone."""

from __future__ import annotations

import logging

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]

from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from fraud_filter.kafka.client import librdkafka_config
from fraud_filter.kafka.offsets import describe_error

_TIMESTAMP_TYPE = "message.timestamp.type"

_log = logging.getLogger(__name__)


def require_append_time(settings: Settings, topics: list[str]) -> None:
    """Refuses topics whose records are stamped by producers; a broker that does not tell is believed.

    Raises:
        UsageError: a topic's `message.timestamp.type` is another.
    """
    admin = AdminClient(librdkafka_config(settings))
    resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
    answers = admin.describe_configs(resources, request_timeout=settings.kafka_timeout_s)
    for resource, answer in answers.items():
        try:
            config = answer.result(timeout=settings.kafka_timeout_s)
        except KafkaException as error:
            _log.warning("event=timestamp_type_unknown topic=%s reason=%s", resource.name, describe_error(error))
            continue
        if config[_TIMESTAMP_TYPE].value != "LogAppendTime":
            raise wrong_timestamps(resource.name, f"{_TIMESTAMP_TYPE}={config[_TIMESTAMP_TYPE].value}")


def wrong_timestamps(topic: str, found: str) -> UsageError:
    """The error about a topic with other times than LogAppendTime; `found` is what it has."""
    return UsageError(
        f"topic {topic!r} has {found}: latency is measured between the brokers' append times. Set "
        f"{_TIMESTAMP_TYPE}=LogAppendTime on it (`fraud-filter topics` makes topics so)"
    )
