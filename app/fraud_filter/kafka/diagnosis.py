"""Why no broker answers: a client's timeout does not say it, its connections do."""

from __future__ import annotations

import re
import time

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from fraud_filter.config import Settings
from fraud_filter.config.reachable import unreachable
from fraud_filter.kafka.client import librdkafka_config

_ASK_S = 2.0
_LOOK_S = 0.3
_CONNECT = re.compile(r"(?:\w+://)?(\S+)/(\d+): ((?:Connect to|Failed to resolve) .*)")


def diagnose(settings: Settings) -> str | None:
    """The reason in a few words, asked for within some seconds; None where a new client finds nothing wrong."""
    told: list[KafkaError] = []
    client = AdminClient(librdkafka_config(settings) | {"error_cb": told.append})
    until = time.monotonic() + _ASK_S
    while True:
        try:
            known = client.list_topics(timeout=_LOOK_S)
            break
        except KafkaException:
            client.poll(0)  # hands out what is told
        words = [error.str() for error in told if error.code() != KafkaError._ALL_BROKERS_DOWN]
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
