"""Topic set-up on the real broker."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import ConfigResource

from fraud_filter.config import Settings, load
from fraud_filter.errors import UsageError
from fraud_filter.home import HOME
from fraud_filter.kafka.consumer import find_bounds, open_consumer
from fraud_filter.kafka.topics import create_topics
from lab.harness.broker import Broker


@pytest.fixture
def settings(broker: Broker, admin: Any) -> Iterator[Settings]:
    """Names of topics that do not exist; whatever was created by them is deleted."""
    run = uuid.uuid4().hex[:8]
    names = {f"{kind}_topic": f"{kind}-{run}" for kind in ("input", "flagged", "rejected")}
    yield load({"kafka_bootstrap_servers": broker.address, **names})
    admin.delete_topics([name for name in admin.list_topics() if name in names.values()])


def test_missing_topics_are_created_with_their_settings_and_only_once(settings: Settings, admin: Any) -> None:
    names = [settings.input_topic, settings.flagged_topic, settings.rejected_topic]
    assert create_topics(settings, partitions=3) == names
    admin.wait_for_topics(names)
    assert {topic["name"]: len(topic["partitions"]) for topic in admin.describe_topics(names)} == dict(
        zip(names, (3, 3, 1), strict=True)
    )
    config = admin.describe_configs([ConfigResource("TOPIC", name) for name in names], config_filter="all")["topic"]
    for name in names:
        assert config[name]["message.timestamp.type"]["value"] == "LogAppendTime"
    assert config[settings.input_topic]["retention.ms"]["value"] == "86400000"
    assert create_topics(settings, partitions=3) == []


def test_only_what_is_missing_is_created(settings: Settings, admin: Any, tmp_path: Path) -> None:
    one = tmp_path / "topics.yml"
    stamp = "{message.timestamp.type: LogAppendTime, retention.ms: 604800000}"
    one.write_text(f"topics: [{{name: payments.flagged, partitions: 2, config: {stamp}}}]")
    assert create_topics(settings.model_copy(update={"topics_file": one})) == [settings.flagged_topic]
    admin.wait_for_topics([settings.flagged_topic])
    assert create_topics(settings) == [settings.input_topic, settings.rejected_topic]


def test_another_number_of_partitions_is_a_warning_that_says_how_to_mend_it(
    settings: Settings, admin: Any, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    admin.wait_for_topics(create_topics(settings, partitions=2))
    with caplog.at_level(logging.WARNING):
        assert create_topics(settings, partitions=4) == []
        assert create_topics(settings, partitions=1) == []
    more, _, fewer, _ = caplog.messages
    alter = f"kafka-topics.sh --bootstrap-server {broker.address} --alter --topic {settings.input_topic} --partitions 4"
    assert f"exists with 2 partitions, wanted are 4; add them with `{alter}`" in more
    assert "exists with 2 partitions, wanted are 1; Kafka can't remove partitions" in fewer


def test_another_setting_is_a_warning(
    settings: Settings, admin: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    admin.wait_for_topics(create_topics(settings))
    changed = tmp_path / "topics.yml"
    changed.write_text((HOME / "kafka/topics.yml").read_text().replace("86400000", "5000"))
    with caplog.at_level(logging.WARNING):
        create_topics(settings.model_copy(update={"topics_file": changed}))
    [warning] = caplog.messages
    assert f"topic '{settings.input_topic}' exists with retention.ms=86400000, wanted is 5000" in warning
    assert "--add-config retention.ms=5000" in warning


def test_another_timestamp_type_is_refused(settings: Settings, admin: Any) -> None:
    admin.create_topics({settings.input_topic: {"num_partitions": 2, "replication_factor": 1}})
    admin.wait_for_topics([settings.input_topic])
    with pytest.raises(UsageError) as refused:
        create_topics(settings)
    assert "exists with message.timestamp.type=CreateTime, wanted is LogAppendTime" in str(refused.value)
    assert "--add-config message.timestamp.type=LogAppendTime" in str(refused.value)


def test_what_the_broker_refuses_is_said(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "topics.yml"
    file.write_text("topics: [{name: payments, partitions: 1, replication_factor: 3}]")
    with pytest.raises(UsageError, match=f"topic '{settings.input_topic}' was refused by the broker: .*factor of 3"):
        create_topics(settings.model_copy(update={"topics_file": file}))


def test_the_end_of_a_partition_that_the_client_has_not_heard_of_is_known_soon(settings: Settings, admin: Any) -> None:
    """One that was added; or that a broker which has just started did not tell of."""
    create_topics(settings, partitions=1)
    with open_consumer(settings) as consumer:
        assert find_bounds(consumer, settings, settings.input_topic, [0]) == {0: (0, 0)}
        admin.create_partitions({settings.input_topic: 3})
        assert find_bounds(consumer, settings, settings.input_topic, [2]) == {2: (0, 0)}
