"""The topics file, without a broker."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fraud_filter.config import load
from fraud_filter.errors import UsageError
from fraud_filter.kafka.topics import load_topics


def test_the_shipped_topics_stamp_records_on_arrival() -> None:
    topics = load_topics(load())
    assert [topic.name for topic in topics] == ["payments", "payments.flagged", "payments.rejected"]
    assert all(topic.config["message.timestamp.type"] == "LogAppendTime" for topic in topics)


def test_names_come_from_the_settings_and_partitions_from_the_caller() -> None:
    settings = load({"input_topic": "in", "flagged_topic": "out", "rejected_topic": "bad"})
    topics = load_topics(settings, partitions=8)
    assert [(topic.name, topic.partitions) for topic in topics] == [("in", 8), ("out", 8), ("bad", 1)]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, [("payments", 8), ("payments.flagged", 8), ("payments.approved", 8), ("payments.rejected", 1)]),
        ({"approved_topic": "payments.flagged"}, [("payments", 8), ("payments.flagged", 8), ("payments.rejected", 1)]),
        ({"rejected_topic": "all", "flagged_topic": "all", "approved_topic": "all"}, [("payments", 8), ("all", 8)]),
    ],
)
def test_decisions_on_all_payments_have_a_topic_of_their_own_or_share_one(
    given: dict[str, str], names: list[tuple[str, int]]
) -> None:
    topics = load_topics(load({"emit": "all", **given}), partitions=8)
    assert [(topic.name, topic.partitions) for topic in topics] == names


def test_values_are_what_kafka_takes(tmp_path: Path) -> None:
    file = tmp_path / "topics.yml"
    file.write_text("topics: [{name: other, partitions: 3, config: {retention.ms: 5, preallocate: true}}]")
    [topic] = load_topics(load({"topics_file": file}))
    assert (topic.name, topic.partitions, topic.replication_factor) == ("other", 3, None)
    assert topic.config == {"retention.ms": "5", "preallocate": "true"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("topics: [", "is not valid YAML in line 1"),
        ("nope: 1", "topics: "),
        ("topics: [{name: a, name: b, partitions: 1}]", "the key 'name' stands twice"),
        ("topics: []", "topics: must hold at least one"),
        (
            "topics: [{name: a, partitions: 0}]",
            "topics.0.partitions: Input should be greater than or equal to 1 (got '0')",
        ),
        ("topics: [{name: a}]", "topics.0.partitions"),
        ("topics: [{name: a, partitions: 1, config: nope}]", "topics.0.config: must be a mapping"),
        (
            "topics: [{name: a, partitions: 1, retention: 5}]",
            "topics.0.retention: unknown key (did you mean 'partitions'?); there are name, partitions",
        ),
    ],
)
def test_malformed_files_are_refused(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "topics.yml"
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        load_topics(load({"topics_file": file}))
    assert f"topics file {file}" in str(refused.value)
    assert said in str(refused.value)


def test_one_name_for_two_topics_is_refused(tmp_path: Path) -> None:
    given = load()
    content = yaml.safe_load(given.topics_file.read_text())
    content["topics"].append(content["topics"][0])
    (tmp_path / "topics.yml").write_text(yaml.safe_dump(content))
    with pytest.raises(UsageError, match="topic 'payments' is there twice"):
        load_topics(load({"topics_file": str(tmp_path / "topics.yml")}))
