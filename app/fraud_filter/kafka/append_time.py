"""Topics whose records the brokers stamp (LogAppendTime): latency is measured between such times alone.

The windows of features are windows of such times, too: a producer's clock may be wrong, and Spark would drop what seems
late.
"""

from __future__ import annotations

import logging

from confluent_kafka import KafkaException

from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from fraud_filter.kafka.refusals import describe_error, is_unanswered, no_broker
from fraud_filter.kafka.topic_config import read_config
from fraud_filter.kafka.topic_id import open_admin

_TIMESTAMP_TYPE = "message.timestamp.type"

_log = logging.getLogger(__name__)


def require_append_time(settings: Settings, topics: list[str]) -> None:
    """Refuses topics whose records are stamped by producers; a broker that does not tell this user is believed.

    Raises:
        NoBrokerError: no broker answers within `kafka_timeout_s` seconds.
        UsageError: a topic's `message.timestamp.type` is another.
    """
    admin = open_admin(settings)
    for topic in topics:
        try:
            stamped = read_config(admin, settings, topic)[_TIMESTAMP_TYPE]
        except KafkaException as error:
            if is_unanswered(error):
                raise no_broker(settings, error) from None
            _log.warning("event=timestamp_type_unknown topic=%s reason=%s", topic, describe_error(error))
            continue
        if stamped != "LogAppendTime":
            raise wrong_timestamps(topic, f"{_TIMESTAMP_TYPE}={stamped}")


def wrong_timestamps(topic: str, found: str) -> UsageError:
    """The error about a topic with other times than LogAppendTime; `found` is what it has."""
    return UsageError(
        f"topic {topic!r} has {found}: latency and windows are measured in the brokers' append times. Set "
        f"{_TIMESTAMP_TYPE}=LogAppendTime on it (`fraud-filter topics` makes topics so)"
    )
