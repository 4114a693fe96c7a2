"""What the monitor sees of the input topic: with a partition that has no leader, and with a thousand partitions."""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from kafka.producer.kafka import KafkaProducer

from faults import metrics
from fraud_filter.config import Settings, load
from fraud_filter.kafka.admin import find_input, open_admin
from fraud_filter.kafka.client import librdkafka_config
from fraud_filter.kafka.consumer import open_consumer
from fraud_filter.monitor import input_watch
from fraud_filter.monitor.input_watch import InputWatch, ReadableEnds, watch_input
from fraud_filter.monitor.monitor import Monitor
from lab.harness.broker import Broker, open_brokers
from lab.harness.processes import free_ports, kill_family
from lab.harness.workspace import Workspace
from running import until

MANY = 1000
#: The number of the second broker.
NODE = 2
LOOKS = 20
#: From a new leader on, in seconds.
KNOWN_S = 10


@pytest.fixture(scope="module")
def cluster(java_home: Path, kafka_jars: list[Path]) -> Iterator[list[Broker]]:
    with (
        Workspace("fraud-filter-three-") as workspace,
        open_brokers(workspace, 3, java_home=java_home, jars=kafka_jars) as brokers,
    ):
        yield brokers


@pytest.fixture
def pair(cluster: list[Broker]) -> tuple[Broker, Broker]:
    """Two brokers of a cluster of three, which know each other, also when a test has killed the second one."""
    first, second, _ = cluster
    second.start()
    client = AdminClient({"bootstrap.servers": first.address})
    until(lambda: NODE in client.list_topics(timeout=5).brokers, "two brokers", 60)
    name = create_topic(client, NODE)
    until(lambda: leader(client, name) == NODE, "the second one leads", 60)
    return first, second


def create_topic(client: AdminClient, *replicas: int | list[int]) -> str:
    """Its name; each partition lies on the brokers that are given for it."""
    name = f"payments-{uuid.uuid4().hex[:8]}"
    placed = [[one] if isinstance(one, int) else one for one in replicas]
    client.create_topics([NewTopic(name, len(placed), replica_assignment=placed)])[name].result(30)
    until(lambda: len(partitions(client, name)) == len(placed), "a broker tells of the topic")
    return name


def partitions(client: AdminClient, topic: str) -> dict[int, Any]:
    """By number; a broker answers with none until it has heard of the topic, later than the one that made it."""
    return client.list_topics(topic, timeout=10).topics[topic].partitions


def leader(client: AdminClient, topic: str) -> int | None:
    """Of the topic's first partition."""
    known = partitions(client, topic)
    return known[0].leader if known else None


def test_of_a_partition_without_a_leader_nothing_is_known_and_of_the_others_all_is(pair: tuple[Broker, Broker]) -> None:
    first, second = pair
    topic = create_topic(AdminClient({"bootstrap.servers": first.address}), 1, NODE, 1)
    (port,) = free_ports(1)
    producer = KafkaProducer(bootstrap_servers=first.address, acks="all")

    def send(*partitions: int) -> None:
        for number in partitions:
            producer.send(topic, b"x", partition=number).get(timeout=20)

    def seen() -> tuple[dict[str, float], float]:
        known = metrics(port, "partition")
        name = "fraud_filter_latest_offset/"
        ends = {key.removeprefix(name): value for key, value in known.items() if key.startswith(name)}
        return ends, known.get("fraud_filter_unknown_partitions", -1)

    send(0, 1, 2)
    settings = load({"kafka_bootstrap_servers": first.address, "input_topic": topic, "metrics_port": port})
    with closing(Monitor(settings, ())):
        until(lambda: seen() == ({"0": 1, "1": 1, "2": 1}, 0), "all ends are known")
        second.stop()
        until(lambda: seen() == ({"0": 1, "2": 1}, 1), "that of one partition is not", 60)
        send(0, 2)
        until(lambda: seen() == ({"0": 2, "2": 2}, 1), "those of the others move on")
        second.start()
        until(lambda: seen() == ({"0": 2, "1": 1, "2": 2}, 0), "all ends are known again", 60)
        send(1)
        until(lambda: seen() == ({"0": 2, "1": 2, "2": 2}, 0), "all move on")
    producer.close()


def test_a_client_whose_controller_is_killed_asks_another_broker(pair: tuple[Broker, Broker]) -> None:
    first, second = pair
    topic = create_topic(AdminClient({"bootstrap.servers": first.address}), 1)
    settings = load({"kafka_bootstrap_servers": first.address, "input_topic": topic})
    client = open_admin(settings)
    until(lambda: client.list_topics(timeout=5).controller_id == NODE, "a broker tells of the second as controller", 60)
    kill_family(second.child)
    assert find_input(client, settings).led == [0]


def test_a_new_leader_is_known_soon_though_the_dead_broker_is_the_one_that_settings_name(
    pair: tuple[Broker, Broker],
) -> None:
    first, second = pair
    client = AdminClient({"bootstrap.servers": first.address})
    topic = create_topic(client, [NODE, 1])

    def both_have_it() -> bool:
        known = partitions(client, topic)
        return bool(known) and len(known[0].isrs) == 2

    until(both_have_it, "both have the partition", 60)
    named = client.list_topics(timeout=5).brokers[NODE]
    led_at = 0.0
    there = {"kafka_bootstrap_servers": f"{named.host}:{named.port}", "input_topic": topic}
    with watch_input(load(there)) as watch:
        until(lambda: watch.look({}) is not None, "the end is known")
        kill_family(second.child)
        until(lambda: watch.look({}) is None, "it is not", 30)
        while watch.look({}) is None:
            if leader(client, topic) == 1:
                led_at = led_at or time.monotonic()
            assert not led_at or time.monotonic() < led_at + KNOWN_S
            time.sleep(1)


@pytest.fixture(scope="module")
def many(broker: Broker, admin: Any) -> Iterator[Settings]:
    """A topic of a thousand partitions, with a record in every tenth of them."""
    name = "payments-many"
    admin.create_topics({name: {"num_partitions": MANY, "replication_factor": 1}})
    settings = load({"kafka_bootstrap_servers": broker.address, "input_topic": name})
    with watch_input(settings) as watch:
        until(lambda: len(getattr(watch.look({}), "bounds", ())) == MANY, "all partitions have a leader", 120)
    producer = KafkaProducer(bootstrap_servers=broker.address, acks="all")
    for sent in [producer.send(name, b"x", partition=number) for number in range(0, MANY, 10)]:
        sent.get(timeout=60)
    producer.close()
    yield settings
    admin.delete_topics([name])


def test_a_look_at_a_thousand_partitions_is_a_few_requests(many: Settings) -> None:
    requests: Counter[str] = Counter()

    def count(told: str) -> None:
        requests.clear()
        for node in json.loads(told)["brokers"].values():
            requests.update(node["req"])

    committed = dict.fromkeys(range(MANY), 0)
    admin = AdminClient(librdkafka_config(many, statistics_interval_ms=500) | {"stats_cb": count})
    with open_consumer(many, **input_watch.CONSUMER) as reader:
        watch = InputWatch(many, admin, ReadableEnds(reader, many))
        for _ in range(5):  # a connection, and a record of each partition that has one
            assert watch.look(committed)
        time.sleep(1)  # statistics come each half a second
        admin.poll(2)
        before, times = Counter(requests), []
        for _ in range(LOOKS):
            began = time.monotonic()
            seen = watch.look(committed)
            times.append(time.monotonic() - began)
            assert seen
            assert sum(seen.latest.values()) == sum(seen.readable.values()) == MANY // 10
        time.sleep(1)
        admin.poll(2)
        asked = Counter(requests)
        asked.subtract(before)
    print(f"measured: slowest look {max(times):.3f} s, {dict(+asked)} in {LOOKS} looks")  # noqa: T201
    assert 0 < asked["ListOffsets"] <= 3 * LOOKS
    assert sum(asked.values()) <= 6 * LOOKS
