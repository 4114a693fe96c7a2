"""How long the state of features is kept at a start over a backlog: on a real broker's append times."""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import Producer

from fraud_filter.config import duration_s, load
from fraud_filter.supervisor.resume.state import fit_lag
from lab.harness.broker import Broker

TopicMaker = Callable[..., str]


def test_the_state_is_kept_longer_only_for_a_backlog_that_is_older(broker: Broker, topics: TopicMaker) -> None:
    topic = topics("payments", partitions=3, **{"message.timestamp.type": "LogAppendTime"})
    given = {"kafka_bootstrap_servers": broker.address, "input_topic": topic}
    short, long = (load({**given, "velocity_lag": lag}) for lag in ("4 seconds", "1 hour"))
    producer = Producer({"bootstrap.servers": broker.address})
    for partition in (0, 0, 1):
        producer.produce(topic, b"{}", partition=partition)
    producer.flush()
    appended = time.monotonic()
    ends = {0: 2, 1: 1, 2: 0}
    assert fit_lag(short, {0: 1, 1: 0, 2: 0}, ends) is short
    time.sleep(2.5)  # more than half of the shorter lag
    began = time.monotonic()
    fitted = duration_s(fit_lag(short, {0: 1, 1: 0, 2: 0}, ends).velocity_lag)
    assert 2 * (began - appended) <= fitted <= 2 * (time.monotonic() - appended) + 3
    assert fit_lag(short, ends, ends) is short, "all is read"
    assert fit_lag(long, {0: 0, 1: 0, 2: 0}, ends) is long
