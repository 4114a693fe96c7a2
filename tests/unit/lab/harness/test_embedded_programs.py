"""The settings that child processes get."""

from __future__ import annotations

from pathlib import Path

import pytest

from fraud_filter import config
from lab.harness.drain import records_between
from lab.harness.embedded_stack import on_this_machine
from lab.harness.programs import environment


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for setting in config.Settings.model_fields:
        monkeypatch.delenv(config.env_name(setting), raising=False)
    monkeypatch.chdir(tmp_path)  # no .env


def test_a_child_gets_exactly_the_settings_of_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    users = config.load({"real_time_duration": "1 minute", "spark_conf": {"spark.driver.memory": "2g"}, "linger_ms": 3})
    own = on_this_machine(users, "127.0.0.1:40001", 4)
    for name, value in environment(own).items():
        monkeypatch.setenv(name, value)
    assert config.load() == own


def test_a_stack_uses_its_own_broker_and_spark_whatever_the_user_has_set() -> None:
    users = config.load(
        {
            "kafka_bootstrap_servers": "kafka.example.org:9092",
            "kafka_security_protocol": "SASL_SSL",
            "spark_master": "spark://master:7077",
            "sink": "console",
            "input_topic": "my-payments",
        }
    )
    own = on_this_machine(users, "127.0.0.1:40001", 12)
    assert own.kafka_bootstrap_servers == "127.0.0.1:40001"
    assert own.kafka_security_protocol == "PLAINTEXT"
    assert own.spark_master == "local[14]"  # a task slot for each partition, and some to spare
    assert own.sink == "kafka"
    assert own.input_topic == "my-payments"


def test_secrets_are_not_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAUD_KAFKA_SASL_PASSWORD", "hidden")
    assert "FRAUD_KAFKA_SASL_PASSWORD" not in environment(config.load())


def test_records_between_counts_over_all_partitions() -> None:
    assert records_between({0: 5, 1: 7}, {0: 15, 1: 7}) == 10
    assert records_between({0: 5}, {0: 4, 1: 3}) == 3  # an output ahead of an old end is no lag
