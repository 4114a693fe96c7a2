"""The options of the query's Kafka source."""

from __future__ import annotations

from fraud_filter.config import load
from fraud_filter.modes import MODES
from fraud_filter.query.sources import kafka_source


def test_a_broker_that_is_gone_or_hangs_is_waited_for_in_seconds_unless_the_user_says_otherwise() -> None:
    """Kafka's own times held real-time mode up for 62 and 124 s (`test_three_brokers`)."""
    names = ("request.timeout", "default.api.timeout", "metadata.max.age")
    times = {f"kafka.{name}.ms": each for name, each in zip(names, ("10000", "30000", "10000"), strict=True)}
    own = dict.fromkeys(times, "45000")
    assert times.items() <= kafka_source(MODES["real-time"], load({}), 2).items()
    assert own.items() <= kafka_source(MODES["real-time"], load({"kafka_source_options": own}), 2).items()
