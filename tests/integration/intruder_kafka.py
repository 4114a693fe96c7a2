"""What an intruder gets of a Kafka broker, by login."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

NOTHING = "nothing"
#: Seconds that a broker's client is waited for.
_ANSWER_S = 40.0
_NO_ANSWER = "no answer"
#: Bytes; more than kafka/topics.yml lets any topic take.
_TOO_LARGE = 5_000_000
_CERTIFICATE = (("certificate", "crt"), ("key", "key"))


def logins(secrets: Path, users: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is held, and the client's settings with it; without encryption only where there is no authority's file."""
    ca = secrets / "kafka-ca.crt"
    yield NOTHING, {"security.protocol": "PLAINTEXT"}
    if ca.exists():
        tls = {"security.protocol": "SSL", "ssl.ca.location": str(ca)}
        certificate = {f"ssl.{part}.location": str(secrets / f"kafka-admin.{end}") for part, end in _CERTIFICATE}
        yield ca.name, tls
        yield "kafka-admin.key", {**tls, **certificate}
        for user in users:
            login = {"sasl.username": user, "sasl.password": (secrets / user).read_text()}
            yield user, {**tls, **login, "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}


def ask(login: dict[str, Any], server: str, topics: Sequence[str], groups: Sequence[str]) -> dict[str, str]:
    """What was tried, and why it was refused; the reason is empty when it was had."""
    conf = {**login, "bootstrap.servers": server, "log_level": 0}
    admin = AdminClient(conf)
    try:
        admin.list_topics(timeout=_ANSWER_S)
    except KafkaException as error:
        return {"log in": str(error.args[0].name())}
    with ThreadPoolExecutor(8) as pool:
        answers = {what: pool.submit(try_it) for what, try_it in _questions(admin, conf, topics, groups).items()}
    return {"log in": "", **{what: answer.result() for what, answer in answers.items()}}


def forward(own_port: int, address: str, port: int) -> None:
    """Makes a port of this container lead there."""
    server = socket.create_server(("127.0.0.1", own_port))

    def pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while some := source.recv(65536):
                target.sendall(some)
            target.shutdown(socket.SHUT_WR)

    def serve() -> None:
        while True:
            ends = server.accept()[0], socket.create_connection((address, port))
            for pair in (ends, ends[::-1]):
                Thread(target=pump, args=pair, daemon=True).start()

    Thread(target=serve, daemon=True).start()


def _questions(
    admin: AdminClient, conf: dict[str, Any], topics: Sequence[str], groups: Sequence[str]
) -> dict[str, Callable[[], str]]:
    one, broker = NewTopic("intruder", 1), ConfigResource(ConfigResource.Type.BROKER, "1")
    offsets = {group: [ConsumerGroupTopicPartitions(group)] for group in groups}
    return {
        **{f"read {topic}": partial(_read, conf, topic) for topic in topics},
        **{f"write {topic}": partial(_write, conf, topic) for topic in topics},
        **{
            f"group {group}": partial(_result, partial(admin.list_consumer_group_offsets, asked))
            for group, asked in offsets.items()
        },
        "make a topic": partial(_result, partial(admin.create_topics, [one], validate_only=True)),
        "see the broker's settings": partial(_result, partial(admin.describe_configs, [broker])),
        "see rights": partial(_see_rights, admin),
    }


def _result(ask: Callable[[], dict[Any, Any]]) -> str:
    try:
        for answer in ask().values():
            answer.result(_ANSWER_S)
    except KafkaException as error:
        return str(error.args[0].name())
    except TimeoutError:
        return _NO_ANSWER
    return ""


def _see_rights(admin: AdminClient) -> str:
    """The client hides a refusal: nothing is seen then."""
    anything: Any = None
    every = AclBindingFilter(
        ResourceType.ANY, anything, ResourcePatternType.ANY, anything, anything, AclOperation.ANY, AclPermissionType.ANY
    )
    try:
        return "" if admin.describe_acls(every).result(_ANSWER_S) else "none"
    except (KafkaException, TimeoutError) as error:
        return type(error).__name__


def _read(conf: dict[str, Any], topic: str) -> str:
    """By assignment: no group is asked for leave then, whatever the client says of its own."""
    own = {"group.id": "intruder", "auto.offset.reset": "earliest", "enable.partition.eof": True}
    consumer = Consumer({**conf, **own})
    deadline = time.monotonic() + _ANSWER_S
    try:
        unknown = consumer.list_topics(topic, _ANSWER_S).topics[topic].error
        if unknown:
            return str(unknown.name())
        consumer.assign([TopicPartition(topic, 0, 0)])
        while time.monotonic() < deadline:
            message = consumer.poll(1)
            error = message.error() if message else None
            if message and (not error or error.name() == "_PARTITION_EOF"):
                return ""
            if error and error.name() == "TOPIC_AUTHORIZATION_FAILED":
                return str(error.name())
    except KafkaException as error:
        return str(error.args[0].name())
    finally:
        consumer.close()
    return _NO_ANSWER


def _write(conf: dict[str, Any], topic: str) -> str:
    """A record that no topic takes, for its size: it is refused as too large to who has the right to write."""
    said: list[str] = []
    producer = Producer({**conf, "message.max.bytes": 2 * _TOO_LARGE, "message.timeout.ms": round(_ANSWER_S * 1000)})
    producer.produce(topic, bytes(_TOO_LARGE), on_delivery=lambda error, _: said.append(error.name() if error else ""))
    producer.flush(_ANSWER_S + 2)
    answer = said[0] if said else _NO_ANSWER
    return "" if answer == "MSG_SIZE_TOO_LARGE" else answer or "written"
