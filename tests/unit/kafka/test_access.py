"""Kafka's users and rights as `kafka/access.yml` says them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from confluent_kafka.admin import AclOperation, ResourceType  # type: ignore[attr-defined]

from fraud_filter.compose.secrets import FILES
from fraud_filter.config import Settings, load
from fraud_filter.errors import UsageError
from fraud_filter.home import HOME
from fraud_filter.kafka.access import ACCESS_FILE, User, load_users


@pytest.fixture
def settings() -> Settings:
    return load({"input_topic": "in", "flagged_topic": "out"}, Path("/dev/null"))


def writers(users: list[User], topic: str) -> set[str]:
    return _with(users, topic, AclOperation.WRITE)


def readers(users: list[User], topic: str) -> set[str]:
    return _with(users, topic, AclOperation.READ)


def _with(users: list[User], topic: str, operation: AclOperation) -> set[str]:
    return {
        right.principal
        for user in users
        for right in user.rights()
        if right.restype == ResourceType.TOPIC and right.name == topic and right.operation == operation
    }


def test_topics_have_the_settings_names_and_each_its_writers_and_readers(settings: Settings) -> None:
    users = load_users(settings)
    assert writers(users, "in") == {"User:kafka-generator", "User:kafka-operator"}
    assert readers(users, "in") == {"User:kafka-filter", "User:kafka-operator"}
    for output in ("out", "payments.rejected"):
        assert writers(users, output) == {"User:kafka-filter"}
        assert readers(users, output) == {"User:kafka-filter", "User:kafka-probe", "User:kafka-operator"}
    assert readers(users, "payments") == set()


def test_a_topic_of_approved_records_has_rights_where_there_is_one(settings: Settings) -> None:
    assert writers(load_users(settings), "payments.approved") == set()
    users = load_users(settings.model_copy(update={"emit": "all"}))
    assert writers(users, "payments.approved") == {"User:kafka-filter"}
    assert readers(users, "payments.approved") == {"User:kafka-filter", "User:kafka-probe", "User:kafka-operator"}


def test_the_file_speaks_of_the_topics_that_are_made() -> None:
    topics = {topic["name"] for topic in yaml.safe_load((HOME / "kafka/topics.yml").read_text())["topics"]}
    assert {name for user in yaml.safe_load(ACCESS_FILE.read_text())["users"] for name in user["topics"]} == topics


def test_every_user_has_a_password(settings: Settings) -> None:
    assert {user.name for user in load_users(settings)} <= set(FILES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("users: []", "users"),
        ("users: [{name: a, topics: {x: [FLY]}}]", "(got 'FLY')"),
        ("users: [{name: 'User:a'}]", "users.0.name"),
        ("users: [{name: a}, {name: a}]", "'a' is there twice"),
        ("users: [{name: a, rights: all}]", "rights"),
        ("{", "is not valid YAML in line 1"),
    ],
)
def test_a_wrong_file_is_named(settings: Settings, tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "access.yml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"access\.yml") as refused:
        load_users(settings, file)
    assert said in str(refused.value)
