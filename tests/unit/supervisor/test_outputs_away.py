"""What a start does where it can't look into the outputs."""

from __future__ import annotations

import pytest

from fraud_filter.config import load
from fraud_filter.kafka.refusals import NoBrokerError
from fraud_filter.supervisor.written import WrittenDecisions


def test_without_a_broker_it_is_not_said_that_nothing_is_decided() -> None:
    """A query that starts then would write decisions again."""
    away = load({"kafka_bootstrap_servers": "127.0.0.1:1", "kafka_timeout_s": 1})
    with pytest.raises(NoBrokerError):
        WrittenDecisions(away).follow("", {0: 0})
