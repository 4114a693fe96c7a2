"""Topics as the brokers describe them: their partitions, and the id that Kafka gives a topic when it is created.

By that id (KIP-516) a recreated topic, which has the old name, is another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from fraud_filter.config import Settings
from fraud_filter.kafka.client import librdkafka_config
from fraud_filter.kafka.refusals import is_unanswered, no_broker, no_topic

#: A request goes to the controller that the client knows, and a client whose controller is gone waits for it. So each
#: try has a part of the time, and the next one a client that asks the brokers again.
_TRIES = 4
#: How old may be what a client knows of brokers and leaders, in ms. librdkafka's default is 15 minutes.
_KNOWN_MS = 3_000


@dataclass(frozen=True)
class Topic:
    """`id` as Kafka's own tools print it, "" where the brokers give none (before 2.8); its partitions in order.

    `led` are those that have a leader now: no broker tells of the others.
    """

    id: str
    partitions: list[int]
    led: list[int]


def open_admin(settings: Settings) -> AdminClient:
    """A client for administration; it holds connections until it is collected.

    Raises:
        UsageError: name, password, certificate or key are missing or can't be used.
    """
    fresh = {"metadata_max_age_ms": _KNOWN_MS, "topic_metadata_refresh_interval_ms": _KNOWN_MS}
    return AdminClient(librdkafka_config(settings, reconnect_backoff_max_ms=1_000, **fresh))


def find_input(admin: AdminClient, settings: Settings, spare: AdminClient | None = None) -> Topic:
    """The input topic as it is now; no other topic is asked for. `spare` is the client to ask next.

    Raises:
        NoBrokerError: no broker answers within `kafka_timeout_s` seconds.
        UsageError: there is no such topic.
    """
    found = find_topics(admin, settings, [settings.input_topic], spare)
    if not found:
        raise no_topic(settings, "input_topic")
    return found[settings.input_topic]


def find_topics(
    admin: AdminClient, settings: Settings, names: Sequence[str], spare: AdminClient | None = None
) -> dict[str, Topic]:
    """Those of the topics `names` that exist, as they are now; no other topic is asked for.

    Where `admin` gets no answer, `spare` is asked, then new clients.

    Raises:
        NoBrokerError: no broker answers within `kafka_timeout_s` seconds.
    """
    timeout_s = settings.kafka_timeout_s
    spares = [spare] if spare else []
    clients = [admin]

    def ask() -> dict[str, Topic]:
        asked = clients[-1].describe_topics(TopicCollection(list(names)), request_timeout=timeout_s / _TRIES)
        answers = {name: _answer(asked[name], timeout_s) for name in names}
        return {name: _topic(answer) for name, answer in answers.items() if answer is not None}

    retrying = Retrying(
        retry=retry_if_exception(is_unanswered),
        stop=stop_after_delay(timeout_s),
        wait=wait_fixed(0.1),
        before_sleep=lambda _: clients.append(spares.pop() if spares else open_admin(settings)),
        reraise=True,
    )
    try:
        return retrying(ask) if names else {}
    except (KafkaException, LateError) as error:
        raise no_broker(settings, error) from None
    finally:
        # What the closures hold only the collector would free: a client that it ends takes signals, and loses them.
        clients.clear()
        spares.clear()


def _answer(asked: Any, timeout_s: float) -> Any:
    """What is told of one topic; None: there is none of that name."""
    try:
        return asked.result(timeout=timeout_s)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            # The future holds the error, whose traceback holds the future and the client: see `find_topics`.
            error.__traceback__ = None
            return None
        raise


def _topic(described: Any) -> Topic:
    bits = described.topic_id.get_most_significant_bits(), described.topic_id.get_least_significant_bits()
    partitions = sorted(described.partitions, key=lambda part: part.id)
    led = [part.id for part in partitions if part.leader]
    return Topic(str(described.topic_id) if any(bits) else "", [part.id for part in partitions], led)
