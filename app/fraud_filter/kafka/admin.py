"""Topics as the brokers describe them to an administrative client: partitions, ids, settings, and the bounds of all
partitions by three requests a broker.

By its id (KIP-516) a recreated topic, which has the old name, is another one. Latency and the windows of features are
measured between times of the brokers (LogAppendTime): a producer's clock may be wrong, and Spark would drop what seems
late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass
from typing import Any, NamedTuple

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it lists not all that it exports
    AdminClient,
    ConfigResource,
    OffsetSpec,
)
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.kafka.client import librdkafka_config
from fraud_filter.kafka.refusals import describe_error, is_unanswered, no_broker, no_topic
from fraud_filter.text.logs import get_logger

_log = get_logger(__name__)

#: A request goes to the controller that the client knows, and a client whose controller is gone waits for it. So each
#: try has a part of the time, and the next one a client that asks the brokers again.
_TRIES = 4

#: How old may be what a client knows of brokers and leaders, in ms. librdkafka's default is 15 minutes.
_KNOWN_MS = 3_000


@dataclass(frozen=True)
class Topic:
    """`id` as Kafka's own tools print it, "" where the brokers give none (before 2.8); its partitions in order.

    `led`: those that have a leader now. Brokers give no offsets of the others. `replicas`: the fewest of a partition.
    """

    id: str
    partitions: list[int]
    led: list[int]
    replicas: int


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
    replicas = min(len(part.replicas) for part in partitions)
    return Topic(str(described.topic_id) if any(bits) else "", [part.id for part in partitions], led, replicas)


#: As many brokers as keep a topic's records when one of them is lost, and take new ones while it is away.
_ENOUGH_BROKERS = 3


def warn_of_one_replica(admin: AdminClient, settings: Settings, topics: Mapping[str, Topic]) -> None:
    """Warns of topics that one broker alone has, where there are enough brokers for more.

    Args:
        topics: by name.

    Raises:
        KafkaException: no broker answers within `kafka_timeout_s` seconds.
    """
    single = [name for name, topic in topics.items() if topic.replicas == 1]
    if not single:
        return
    brokers = len(admin.list_topics(single[0], timeout=settings.kafka_timeout_s).brokers)
    if brokers >= _ENOUGH_BROKERS:
        _log.warning(
            "topics_on_one_broker",
            topics=", ".join(single),
            brokers=brokers,
            action="give them 3 replicas (kafka-reassign-partitions.sh) and min.insync.replicas=2: each is away while "
            "its broker is, and lost with its disk",
        )


def read_config(admin: AdminClient, settings: Settings, topic: str) -> dict[str, str | None]:
    """All settings of a topic that exists, those that are the broker's defaults included; values as Kafka has them.

    Raises:
        KafkaException: the brokers do not tell within `kafka_timeout_s` seconds, or not this user.
    """
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    [answer] = admin.describe_configs([resource], request_timeout=settings.kafka_timeout_s).values()
    return {name: entry.value for name, entry in answer.result().items()}


#: How long one look waits for a broker that is listed and does not answer; the next look asks again.
_PATIENCE_S = 2.0

Answers = dict[TopicPartition, "Future[Any]"]


class Bounds(NamedTuple):
    """Of a partition: the first retained offset, and the end for a reader with `kafka_isolation_level`.

    `held` offsets lie between that end and the high watermark: an open transaction holds them back from a reader of
    committed records.
    """

    low: int
    end: int
    held: int


def ask_bounds(admin: AdminClient, settings: Settings, partitions: Iterable[int]) -> dict[int, Bounds]:
    """The bounds of partitions of the input.

    Those of which no broker tells within 2 seconds are left out.

    Args:
        partitions: such as have a leader; librdkafka waits for the leader of another, and all others with it.

    Raises:
        FraudFilterError: no broker gives the offsets of any partition.
    """
    asked = [TopicPartition(settings.input_topic, number) for number in partitions]
    if not asked:
        raise FraudFilterError(
            f"the offsets of topic {settings.input_topic!r} can't be read: no partition has a leader"
        )
    ends: Any = OffsetSpec  # has no types
    everything = IsolationLevel.READ_UNCOMMITTED
    answers = [_ask(admin, asked, spec, everything) for spec in (ends.earliest(), ends.latest())]
    found, reason = _take(answers, asked)
    if settings.kafka_isolation_level == "read_committed" and found:
        # Asked afterwards: what is appended meanwhile is not taken for held.
        asked = [partition for partition in asked if partition.partition in found]
        stable, reason = _take([_ask(admin, asked, ends.latest(), IsolationLevel.READ_COMMITTED)], asked)
        found = {number: [*found[number], *end] for number, end in stable.items()}
    if not found:
        raise FraudFilterError(f"the offsets of topic {settings.input_topic!r} can't be read: {reason}")
    return {number: Bounds(at[0], at[-1], max(0, at[1] - at[-1])) for number, at in found.items()}


def _take(answers: list[Answers], asked: list[TopicPartition]) -> tuple[dict[int, list[int]], str]:
    """The offsets of partitions for which all answers came, and why the last one of another partition lacks some."""
    found: dict[int, list[int]] = {}
    reason = ""
    for partition in asked:
        try:
            offsets = [int(each[partition].result(_PATIENCE_S * 2).offset) for each in answers]
            if min(offsets) < 0:  # what librdkafka gives where a broker's answer has none
                reason = "a broker gave none"
            else:
                found[partition.partition] = offsets
        except KafkaException as error:
            reason = describe_error(error)
        except LateError:
            reason = "timed out"
    return found, reason


def _ask(admin: AdminClient, asked: list[TopicPartition], spec: Any, level: IsolationLevel) -> Answers:
    return admin.list_offsets(dict.fromkeys(asked, spec), isolation_level=level, request_timeout=_PATIENCE_S)


#: The one setting of a topic whose other value makes every latency figure wrong.
TIMESTAMP_TYPE = "message.timestamp.type"


def require_append_time(settings: Settings, topics: list[str]) -> None:
    """Refuses topics whose records are stamped by producers; a broker that does not tell this user is believed.

    Raises:
        NoBrokerError: no broker answers within `kafka_timeout_s` seconds.
        UsageError: a topic's `message.timestamp.type` is another.
    """
    admin = open_admin(settings)
    for topic in topics:
        try:
            stamped = read_config(admin, settings, topic)[TIMESTAMP_TYPE]
        except KafkaException as error:
            if is_unanswered(error):
                raise no_broker(settings, error) from None
            _log.warning("timestamp_type_unknown", topic=topic, reason=describe_error(error))
            continue
        if stamped != "LogAppendTime":
            raise wrong_timestamps(topic, f"{TIMESTAMP_TYPE}={stamped}")


def wrong_timestamps(topic: str, found: str) -> UsageError:
    """The error about a topic with other times than LogAppendTime; `found` is what it has."""
    return UsageError(
        f"topic {topic!r} has {found}: latency and windows are measured in the brokers' append times. Set "
        f"{TIMESTAMP_TYPE}=LogAppendTime on it (`fraud-filter topics` makes topics so)"
    )
