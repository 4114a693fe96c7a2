"""Topic set-up from `kafka/topics.yml`: creates what is missing, checks what exists.

Knows no producer or consumer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from kafka.admin import ConfigResource, KafkaAdminClient
from kafka.errors import KafkaError
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.home import HOME
from fraud_filter.kafka.client import describe_login, kafka_python_config
from fraud_filter.kafka.files import own_name, read_file

TOPICS_FILE = HOME / "kafka/topics.yml"

#: The one setting whose other value makes every latency figure wrong, so that a difference is an error.
_TIMESTAMP_TYPE = "message.timestamp.type"
_ALREADY_EXISTS = 36  # Kafka's error code TOPIC_ALREADY_EXISTS

_log = logging.getLogger(__name__)


def _config_text(values: Any) -> Any:
    """Kafka's configuration values are text; YAML reads numbers and booleans."""
    if not isinstance(values, dict):
        return values
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in values.items()}


class TopicSpec(BaseModel):
    """One topic as it should be: name, number of partitions and replicas, Kafka topic configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1)
    partitions: int = Field(ge=1)
    replication_factor: int = Field(1, ge=1)
    config: Annotated[dict[str, str], BeforeValidator(_config_text)] = Field(default_factory=dict)


class _TopicsFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    topics: list[TopicSpec] = Field(min_length=1)


def load_topics(settings: Settings, topics_file: Path = TOPICS_FILE, partitions: int | None = None) -> list[TopicSpec]:
    """Reads the topics file; the three names that the settings know are replaced by the settings' names.

    Args:
        settings: give the names of the input, flagged and rejected topic.
        topics_file: YAML like `kafka/topics.yml`.
        partitions: replaces the number of partitions of the input and of the flagged topic.

    Raises:
        UsageError: the file can't be read or does not describe topics, or two topics get one name.
    """
    content = read_file(topics_file, "topics file", _TopicsFile)
    scaled = ("payments", "payments.flagged") if partitions is not None else ()
    specs = [
        topic.model_copy(
            update={"name": own_name(topic.name, settings)}
            | ({"partitions": partitions} if topic.name in scaled else {})
        )
        for topic in content.topics
    ]
    chosen = [spec.name for spec in specs]
    for name in chosen:
        if chosen.count(name) > 1:
            raise UsageError(
                f"topic {name!r} is named twice: input_topic, flagged_topic, rejected_topic and the names in "
                f"{topics_file} must all differ"
            )
    return specs


def create_topics(settings: Settings, *, topics_file: Path = TOPICS_FILE, partitions: int | None = None) -> list[str]:
    """Creates the topics that are missing and returns their names; what exists is left as it is, and checked.

    A difference in an existing topic is logged as a warning that says how to mend it.

    Args:
        settings: which brokers, and the topics' names.
        topics_file: YAML like `kafka/topics.yml`.
        partitions: number of partitions of the input and of the flagged topic, instead of the file's.

    Raises:
        UsageError: no broker answers within `kafka_timeout_s` seconds, the file is wrong, the broker refuses
            a topic, or an existing topic does not stamp records as the file says (latency would be wrong).
    """
    specs = load_topics(settings, topics_file, partitions)
    with admin_client(settings) as admin:
        found = {topic["name"] for topic in admin.describe_topics([spec.name for spec in specs]) if _exists(topic)}
        created = _create(admin, [spec for spec in specs if spec.name not in found], topics_file)
        _check_existing(admin, settings, [spec for spec in specs if spec.name not in created])
    return created


@contextmanager
def admin_client(settings: Settings) -> Iterator[Any]:
    """An admin client; what goes wrong in its block is explained as a matter of the brokers."""
    timeout_ms = round(settings.kafka_timeout_s * 1000)
    servers = settings.kafka_bootstrap_servers
    try:
        admin = KafkaAdminClient(**kafka_python_config(settings), bootstrap_timeout_ms=timeout_ms)
    except (KafkaError, OSError, ValueError) as error:
        raise UsageError(
            f"setting kafka_bootstrap_servers (KAFKA_BOOTSTRAP_SERVERS): no Kafka broker answered at "
            f"{servers!r} within {settings.kafka_timeout_s:g} s: {error}{describe_login(settings)}"
        ) from None
    try:
        yield admin
    except KafkaError as error:
        raise FraudFilterError(f"the Kafka brokers at {servers!r} (KAFKA_BOOTSTRAP_SERVERS) failed : {error}") from None
    finally:
        admin.close()


def _exists(topic: dict[str, Any]) -> bool:
    return bool(topic["error_code"] == 0)


def _create(admin: Any, specs: list[TopicSpec], topics_file: Path) -> list[str]:
    """Creates the topics, waits until each partition has a leader, and returns the names."""
    if not specs:
        return []
    wanted = {
        spec.name: {
            "num_partitions": spec.partitions,
            "replication_factor": spec.replication_factor,
            "configs": spec.config,
        }
        for spec in specs
    }
    answers = admin.create_topics(wanted, raise_errors=False)["topics"]
    created = [answer["name"] for answer in answers if answer["error_code"] == 0]
    if created:
        admin.wait_for_topics(created)
    for answer in answers:
        # Somebody else may have created it since it was looked up: then it is an existing one.
        if answer["error_code"] not in (0, _ALREADY_EXISTS):
            raise UsageError(
                f"topic {answer['name']!r} was refused by the broker: {answer['error_message']} "
                f"(its settings are in {topics_file})"
            )
    return created


def _check_existing(admin: Any, settings: Settings, specs: list[TopicSpec]) -> None:
    """Compares existing topics with what they should be.

    Raises:
        UsageError: another timestamp type. All else is a warning: it may be meant so.
    """
    if not specs:
        return
    partitions = {
        topic["name"]: len(topic["partitions"]) for topic in admin.describe_topics([spec.name for spec in specs])
    }
    resources = [ConfigResource("TOPIC", spec.name) for spec in specs]
    configs = admin.describe_configs(resources, config_filter="all")["topic"]
    server = f"--bootstrap-server {settings.kafka_bootstrap_servers}"
    for spec in specs:
        if partitions[spec.name] != spec.partitions:
            _log.warning(_partitions_message(spec, partitions[spec.name], server))
        for key, value in spec.config.items():
            present = configs[spec.name].get(key, {}).get("value")
            if present == value:
                continue
            message = (
                f"topic {spec.name!r} exists with {key}={present}, wanted is {value}; change it with "
                f"`kafka-configs.sh {server} --alter --entity-type topics --entity-name {spec.name} "
                f"--add-config {key}={value}`"
            )
            if key == _TIMESTAMP_TYPE:
                raise UsageError(f"{message}: latency is measured between the broker's append times")
            _log.warning(message)


def _partitions_message(spec: TopicSpec, present: int, server: str) -> str:
    how = (
        f"add them with `kafka-topics.sh {server} --alter --topic {spec.name} --partitions {spec.partitions}`"
        if present < spec.partitions
        else "Kafka can't remove partitions: delete the topic first if it must have fewer"
    )
    return f"topic {spec.name!r} exists with {present} partitions, wanted are {spec.partitions}; {how}"
