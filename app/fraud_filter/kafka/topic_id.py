"""The id that Kafka gives a topic when it is created (KIP-516): a recreated topic has the old name and another id."""

from __future__ import annotations

from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from fraud_filter.config import Settings, env_name
from fraud_filter.errors import UsageError
from fraud_filter.kafka.client import describe_login, librdkafka_config
from fraud_filter.kafka.offsets import NoBrokerError, describe_error

#: A request goes to the controller that the client knows, and a client whose controller is gone waits for it. So each
#: try has a part of the time, and the next one a client that asks the brokers anew.
_TRIES = 4


@dataclass(frozen=True)
class Topic:
    """`id` as Kafka's own tools print it, "" where the brokers give none (before 2.8); its partitions in order.

    `led` are those that have a leader now: no broker tells of the others.
    """

    id: str
    partitions: list[int]
    led: list[int]


def open_admin(settings: Settings) -> AdminClient:
    """A client for `find_input`; it holds connections until it is collected.

    Raises:
        UsageError: name, password, certificate or key are missing or can't be used.
    """
    return AdminClient(librdkafka_config(settings))


def find_input(admin: AdminClient, settings: Settings) -> Topic:
    """The input topic as it is now; no other topic is asked for.

    Raises:
        NoBrokerError: no broker answers within `kafka_timeout_s` seconds.
        UsageError: there is no such topic.
    """
    name, timeout_s = settings.input_topic, settings.kafka_timeout_s
    try:
        found = _describe(admin, settings)
    except (KafkaException, LateError) as error:
        if isinstance(error, KafkaException) and error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise UsageError(
                f"setting input_topic (--input-topic, {env_name('input_topic')}): topic {name!r} does not exist at "
                f"{settings.kafka_bootstrap_servers!r}; create it with `fraud-filter topics` or name another"
            ) from None
        raise NoBrokerError(
            f"setting kafka_bootstrap_servers ({env_name('kafka_bootstrap_servers')}): no Kafka broker answered at "
            f"{settings.kafka_bootstrap_servers!r} within {timeout_s:g} s: "
            f"{describe_error(error) if isinstance(error, KafkaException) else 'timed out'}{describe_login(settings)}"
        ) from None
    bits = found.topic_id.get_most_significant_bits(), found.topic_id.get_least_significant_bits()
    partitions = sorted(found.partitions, key=lambda part: part.id)
    led = [part.id for part in partitions if part.leader]
    return Topic(str(found.topic_id) if any(bits) else "", [part.id for part in partitions], led)


def _describe(admin: AdminClient, settings: Settings) -> Any:
    name, timeout_s = settings.input_topic, settings.kafka_timeout_s
    clients = [admin]

    def ask() -> Any:
        asked = clients[-1].describe_topics(TopicCollection([name]), request_timeout=timeout_s / _TRIES)
        return asked[name].result(timeout=timeout_s)

    retrying = Retrying(
        retry=retry_if_exception(_is_unanswered),
        stop=stop_after_delay(timeout_s),
        wait=wait_fixed(0.1),
        before_sleep=lambda _: clients.append(open_admin(settings)),
        reraise=True,
    )
    return retrying(ask)


def _is_unanswered(error: BaseException) -> bool:
    unanswered = KafkaError._TIMED_OUT, KafkaError._TRANSPORT
    return isinstance(error, KafkaException) and error.args[0].code() in unanswered
