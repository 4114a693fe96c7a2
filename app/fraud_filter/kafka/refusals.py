"""What is said of brokers that do not answer and of topics that are not there: one sentence each, whoever asked."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from fraud_filter.config import Settings, named, refused
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.kafka.client import describe_login, describe_user
from fraud_filter.kafka.diagnosis import diagnose


class NoBrokerError(UsageError):
    """No broker answered in time."""


def no_broker(settings: Settings, error: Exception) -> NoBrokerError:
    """No broker answered within `kafka_timeout_s` seconds; `error` is how the client put it.

    What is wrong is looked for, which takes some seconds more.
    """
    found = diagnose(settings)
    reason = found or (describe_error(error) if isinstance(error, KafkaException) else "timed out")
    return NoBrokerError(
        f"{named('kafka_bootstrap_servers')}: no Kafka broker could be used at "
        f"{settings.kafka_bootstrap_servers!r} within {settings.kafka_timeout_s:g} s: {reason}"
        + (_login(found, settings) if found else describe_login(settings))
    )


def _login(reason: str, settings: Settings) -> str:
    """Who was refused, where the reason is a login."""
    return f" ({describe_user(settings)})" if "authentication" in reason.lower() else ""


def unread_offsets(settings: Settings, topic: str, error: KafkaException) -> FraudFilterError:
    """The brokers told of a topic, and then not of its offsets; `error` is how the client put it."""
    found = diagnose(settings)
    if found:
        return no_broker(settings, error)
    return FraudFilterError(f"the offsets of topic {topic!r} can't be read: {describe_error(error)}")


def no_topic(settings: Settings, setting: str) -> UsageError:
    """The topic that `setting` (such as "flagged_topic") names does not exist."""
    reason = f"does not exist at {settings.kafka_bootstrap_servers!r}"
    return refused(setting, getattr(settings, setting), reason, "create it with `fraud-filter topics` or name another")


def is_unanswered(error: BaseException) -> bool:
    """Whether this is no refusal of a broker's, but no word from it."""
    unanswered = KafkaError._TIMED_OUT, KafkaError._TRANSPORT
    return isinstance(error, KafkaException) and error.args[0].code() in unanswered


def describe_error(error: KafkaException) -> str:
    """librdkafka's words without its code."""
    detail = error.args[0]
    return str(detail.str()) if isinstance(detail, KafkaError) else str(detail)
