"""Faults of one or two of three Kafka brokers, as acts of a trial: each returns how long nothing was decided."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

from confluent_kafka import KafkaException
from kafka.admin import KafkaAdminClient

from fraud_filter.config import Settings
from fraud_filter.kafka.admin import open_admin
from fraud_filter.kafka.client import kafka_python_config
from lab.harness.broker import Broker
from lab.harness.embedded_stack import EmbeddedStack
from lab.harness.processes import family_of, kill_family, signal_each
from lab.harness.waiting import let_pass, wait_until
from lab.trials.embedded import START_S, Relay
from lab.trials.embedded_acts import Act
from lab.trials.gap import FlaggedTail, Gap
from lab.trials.plan import Trial

#: How long too few brokers are there, in seconds.
_AWAY_S = 20.0
_ANSWER_S = 10.0
#: The partitions of Kafka's groups, the lock among them; the harness' brokers have one.
_GROUPS = "__consumer_offsets"


def leader_of_input(settings: Settings) -> int:
    """The broker that leads the input's first partition."""
    return _leader(settings, settings.input_topic)


def controller(settings: Settings) -> int:
    """The node that is the active controller."""
    with closing(KafkaAdminClient(**kafka_python_config(settings))) as client:
        quorum = client.describe_metadata_quorum()
    return int(quorum["topics"][0]["partitions"][0]["leader_id"])


def coordinator_of_lock(settings: Settings) -> int:
    """The broker that keeps the group of the checkpoint's lock, where the checkpoint is on no local disk."""
    return _leader(settings, _GROUPS)


def kill(find: Callable[[Settings], int]) -> Act:
    """Kills a broker, which comes back when decisions go on without it."""

    def act(relay: Relay, _: Trial, tail: FlaggedTail) -> Gap:
        stack = relay.scene.stack
        with all_back(stack):
            return relay.await_fresh(tail, kill_at_once([found(stack, find)]))

    return act


def hang(find: Callable[[Settings], int]) -> Act:
    """Stops a broker (SIGSTOP), as one that is cut off, until decisions go on without it."""

    def act(relay: Relay, _: Trial, tail: FlaggedTail) -> Gap:
        stack = relay.scene.stack
        with stopped(stack, [found(stack, find)]):
            return relay.await_fresh(tail, time.time())

    return act


def kill_two(relay: Relay, _: Trial, tail: FlaggedTail) -> Gap:
    """Kills two brokers, which come back: no record can be written meanwhile, and none is lost."""
    with all_back(relay.scene.stack):
        at = kill_at_once(relay.scene.stack.brokers[1:])
        let_pass(_AWAY_S, relay.programs)
    return relay.await_fresh(tail, at)


def restart_each(relay: Relay, _: Trial, tail: FlaggedTail) -> Gap:
    """Restarts the brokers one by one (SIGTERM), each when all records are on all of them again."""
    for broker in relay.scene.stack.brokers:
        broker.stop()
        broker.start()
        _await_in_sync(relay.scene.stack)
    relay.await_fresh(tail, time.time())
    return tail.longest


def kill_at_once(brokers: Sequence[Broker]) -> float:
    """Kills them; returns when, in seconds since 1970."""
    at = min(kill_family(broker.child) for broker in brokers)
    for broker in brokers:
        broker.stop()
    return at


def found(stack: EmbeddedStack, find: Callable[[Settings], int]) -> Broker:
    wanted = find(stack.settings)
    return next(broker for broker in stack.brokers if broker.node == wanted)


@contextmanager
def all_back(stack: EmbeddedStack) -> Iterator[None]:
    """After the block all brokers are there, and have all records."""
    try:
        yield
    finally:
        for broker in stack.brokers:
            broker.launch()
        for broker in stack.brokers:
            broker.start()
        _await_in_sync(stack)


@contextmanager
def stopped(stack: EmbeddedStack, brokers: Sequence[Broker]) -> Iterator[None]:
    """They stand still (SIGSTOP); after the block all brokers have all records."""
    families = [process for broker in brokers for process in family_of(broker.child)]
    signal_each(families, signal.SIGSTOP)
    try:
        yield
    finally:
        signal_each(families, signal.SIGCONT)
        _await_in_sync(stack)


def _await_in_sync(stack: EmbeddedStack) -> None:
    admin = open_admin(stack.settings)

    def in_sync() -> bool:
        try:
            topics = admin.list_topics(timeout=_ANSWER_S).topics.values()
        except KafkaException:  # the broker that was asked is the one that is starting
            return False
        return all(len(part.isrs) == len(part.replicas) for topic in topics for part in topic.partitions.values())

    wait_until(in_sync, START_S, "the brokers do not have all records", [broker.child for broker in stack.brokers])


def _leader(settings: Settings, topic: str) -> int:
    return int(open_admin(settings).list_topics(topic, timeout=_ANSWER_S).topics[topic].partitions[0].leader)
