"""How long the state of features is kept at a start over a backlog: records of known age on a real broker."""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import Producer

from fraud_filter.config import duration_s, load
from fraud_filter.supervisor.start_position import fit_lag
from lab.harness.broker import Broker

TopicMaker = Callable[..., str]

#: Of a record, in seconds.
_OLD, _NEWER = 7200, 600


def test_the_state_is_kept_longer_only_for_a_backlog_that_is_older(broker: Broker, topics: TopicMaker) -> None:
    topic = topics("payments", partitions=3, **{"message.timestamp.type": "CreateTime"})
    given = {"kafka_bootstrap_servers": broker.address, "input_topic": topic}
    short, long = (load({**given, "velocity_lag": lag}) for lag in ("1 hour", "1 day"))
    producer, began = Producer({"bootstrap.servers": broker.address}), time.time()
    for partition, age_s in ((0, _OLD), (0, _NEWER), (1, _NEWER)):
        producer.produce(topic, b"{}", partition=partition, timestamp=round((began - age_s) * 1000))
    producer.flush()
    ends = {0: 2, 1: 1, 2: 0}
    assert fit_lag(short, {0: 1, 1: 0, 2: 0}, ends) is short
    fitted = duration_s(fit_lag(short, {0: 0, 1: 0, 2: 0}, ends).velocity_lag)
    assert 2 * _OLD <= fitted <= 2 * (_OLD + time.time() - began) + 2
    assert fit_lag(short, ends, ends) is short, "all is read"
    assert fit_lag(long, {0: 0, 1: 0, 2: 0}, ends) is long
