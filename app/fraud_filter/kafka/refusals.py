"""What is said of brokers that do not answer and of topics that are not there: one sentence each, whoever asked.

Why no broker answers a client's timeout does not say; its connections do.
"""

from __future__ import annotations

import re
import time

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from fraud_filter.config import Settings, named, refused
from fraud_filter.config.reachable import unreachable
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.kafka.client import describe_login, describe_user, librdkafka_config

_ASK_S = 2.0

_LOOK_S = 0.3

_CONNECT = re.compile(r"(?:\w+://)?(\S+)/(\d+): ((?:Connect to|Failed to resolve) .*)")


def diagnose(settings: Settings) -> str | None:
    """The reason in a few words, asked for within some seconds; None where a new client finds nothing wrong."""
    errors: list[KafkaError] = []
    client = AdminClient(librdkafka_config(settings) | {"error_cb": errors.append})
    until = time.monotonic() + _ASK_S
    while True:
        try:
            known = client.list_topics(timeout=_LOOK_S)
            break
        except KafkaException:
            client.poll(0)  # calls error_cb
        words = [error.str() for error in errors if error.code() != KafkaError._ALL_BROKERS_DOWN]
        if words or time.monotonic() > until:
            return next(filter(None, map(_of_advertised, words)), words[0]) if words else _of_listeners(settings)
    for number, broker in sorted(known.brokers.items()):
        address = f"{broker.host}:{broker.port}"
        if reason := unreachable(address):
            return _away(address, number, reason)
    return None


def _of_advertised(words: str) -> str | None:
    """What a client says of an address that it has from a broker: these have the broker's number, given ones do not."""
    found = _CONNECT.match(words)
    return _away(found[1], int(found[2]), found[3]) if found else None


def _away(address: str, number: int, reason: str) -> str:
    return (
        f"a broker answered and told the address {address} for broker {number}, which can't be reached from here: "
        f"{reason}; set the broker's advertised.listeners to an address that this machine reaches"
    )


def _of_listeners(settings: Settings) -> str | None:
    """What can be said of addresses that take a connection, and then give no answer that a client understands."""
    silent = [address for address in settings.kafka_bootstrap_servers.split(",") if unreachable(address) is None]
    if not silent:
        return None
    return (
        f"something listens at {', '.join(silent)} and does not answer as a Kafka broker: check the address, and "
        f"kafka_security_protocol={settings.kafka_security_protocol}"
    )


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
