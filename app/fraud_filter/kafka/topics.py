"""Topic set-up from `kafka/topics.yml`: creates what is missing, checks what exists."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # it is public
from pydantic import BaseModel, ConfigDict, Field
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.kafka.admin import TIMESTAMP_TYPE, Topic, find_topics, open_admin, read_config, warn_of_one_replica
from fraud_filter.kafka.refusals import describe_error, is_unanswered
from fraud_filter.text.yaml_text import read_yaml

Content = TypeVar("Content", bound=BaseModel)


def read_file(file: Path, what: str, content: type[Content]) -> Content:
    """The content of a YAML file; each value in it is the text that is written.

    Args:
        what: kind of file, such as "topics file", for messages.

    Raises:
        UsageError: the file can't be read, or does not hold what it must.
    """
    try:
        return read_yaml(file, content)
    except ValueError as error:
        raise UsageError(f"{what} {file} {error}") from None


#: Topics of the files, and the settings for their names.
_SETTINGS = {
    "payments": "input_topic",
    "payments.flagged": "flagged_topic",
    "payments.approved": "approved_topic",
    "payments.rejected": "rejected_topic",
}


def own_name(topic: str, settings: Settings) -> str:
    """What a topic of the files is called here: four of them have settings for their names."""
    setting = _SETTINGS.get(topic)
    return getattr(settings, setting) if setting else topic


def is_used(topic: str, settings: Settings) -> bool:
    """Whether a topic of the files is one of this filter's: that of approved records is where all are written."""
    return _SETTINGS.get(topic) != "approved_topic" or settings.emit == "all"


_log = logging.getLogger(__name__)


class TopicSpec(BaseModel):
    """One topic as it should be: name, number of partitions and replicas, Kafka topic configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1)
    partitions: int = Field(ge=1)
    #: None: the brokers' `default.replication.factor`.
    replication_factor: int | None = Field(None, ge=1)
    config: dict[str, str] = Field(default_factory=dict)


class _TopicsFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    topics: list[TopicSpec] = Field(min_length=1)


def load_topics(settings: Settings, partitions: int | None = None) -> list[TopicSpec]:
    """Reads the topics file; the names that the settings know are replaced by the settings' names.

    Where settings name one topic for several kinds of decisions it is made as the first of these.

    Args:
        settings: name the file, and the topics of input and decisions.
        partitions: replaces the number of partitions of the input and of the topics of valid payments.

    Raises:
        UsageError: the file can't be read or does not describe topics, or has a name twice.
    """
    content = read_file(settings.topics_file, "topics file", _TopicsFile)
    declared = [topic.name for topic in content.topics]
    for name in declared:
        if declared.count(name) > 1:
            raise UsageError(f"topics file {settings.topics_file}: topic {name!r} is there twice: keep one of them")
    scaled = ("payments", "payments.flagged", "payments.approved") if partitions is not None else ()
    specs: dict[str, TopicSpec] = {}
    for topic in content.topics:
        name = own_name(topic.name, settings)
        if is_used(topic.name, settings):
            changed = {"name": name} | ({"partitions": partitions} if topic.name in scaled else {})
            specs.setdefault(name, topic.model_copy(update=changed))
    return list(specs.values())


def create_topics(settings: Settings, *, partitions: int | None = None) -> list[str]:
    """Creates the topics that are missing and returns their names; what exists is left as it is, and checked.

    A difference in an existing topic is logged as a warning that says how to mend it.

    Args:
        settings: which brokers, the file, and the topics' names.
        partitions: number of partitions of the input and of the topics of valid payments, instead of the file's.

    Raises:
        UsageError: no broker answers within `kafka_timeout_s` seconds, the file is wrong, the broker refuses
            a topic, or an existing topic does not stamp records as the file says (latency would be wrong).
    """
    specs = load_topics(settings, partitions)
    admin = open_admin(settings)
    names = [spec.name for spec in specs]
    found = find_topics(admin, settings, names)
    try:
        created = _create(admin, settings, [spec for spec in specs if spec.name not in found])
        if created:
            found = _wait_for_leaders(admin, settings, names)
        for spec in specs:
            if spec.name not in created:
                _check_existing(admin, settings, spec, len(found[spec.name].partitions))
        warn_of_one_replica(admin, settings, found)
    except KafkaException as error:
        raise FraudFilterError(
            f"the Kafka brokers at {settings.kafka_bootstrap_servers!r} (KAFKA_BOOTSTRAP_SERVERS) failed: "
            + describe_error(error)
        ) from None
    return created


def _create(admin: AdminClient, settings: Settings, specs: list[TopicSpec]) -> list[str]:
    """Creates the topics and returns their names."""
    if not specs:
        return []
    wanted = [
        NewTopic(spec.name, spec.partitions, replication_factor=spec.replication_factor or -1, config=spec.config)
        for spec in specs
    ]
    answers = admin.create_topics(wanted, request_timeout=settings.kafka_timeout_s)
    created = []
    for spec in specs:
        try:
            answers[spec.name].result()
            created.append(spec.name)
        except KafkaException as error:
            # Somebody else may have created it since it was looked up: then it is an existing one.
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                continue
            if is_unanswered(error):
                raise
            raise UsageError(
                f"topic {spec.name!r} was refused by the broker: {describe_error(error)} "
                f"(its settings are in {settings.topics_file})"
            ) from None
    return created


def _wait_for_leaders(admin: AdminClient, settings: Settings, names: list[str]) -> dict[str, Topic]:
    """The topics, once each partition has a leader: until then it takes no record."""
    retrying = Retrying(
        retry=retry_if_result(
            lambda found: len(found) < len(names) or any(topic.led != topic.partitions for topic in found.values())
        ),
        stop=stop_after_delay(settings.kafka_timeout_s),
        wait=wait_fixed(0.1),
    )
    try:
        return retrying(find_topics, admin, settings, names)
    except RetryError:
        raise FraudFilterError(
            f"the topics {', '.join(names)} were created, but have no leader at {settings.kafka_bootstrap_servers!r} "
            f"after {settings.kafka_timeout_s:g} s (FRAUD_KAFKA_TIMEOUT_S)"
        ) from None


def _check_existing(admin: AdminClient, settings: Settings, spec: TopicSpec, partitions: int) -> None:
    """Compares an existing topic, which has so many `partitions`, with what it should be.

    Raises:
        UsageError: another timestamp type. All else is a warning: it may be meant so.
    """
    server = f"--bootstrap-server {settings.kafka_bootstrap_servers}"
    if partitions != spec.partitions:
        _log.warning(_partitions_message(spec, partitions, server))
    present = read_config(admin, settings, spec.name)
    for key, value in spec.config.items():
        if present.get(key) == value:
            continue
        message = (
            f"topic {spec.name!r} exists with {key}={present.get(key)}, wanted is {value}; change it with "
            f"`kafka-configs.sh {server} --alter --entity-type topics --entity-name {spec.name} "
            f"--add-config {key}={value}`"
        )
        if key == TIMESTAMP_TYPE:
            raise UsageError(f"{message}: latency is measured between the broker's append times")
        _log.warning(message)


def _partitions_message(spec: TopicSpec, present: int, server: str) -> str:
    how = (
        f"add them with `kafka-topics.sh {server} --alter --topic {spec.name} --partitions {spec.partitions}`"
        if present < spec.partitions
        else "Kafka can't remove partitions: delete the topic first if it must have fewer"
    )
    return f"topic {spec.name!r} exists with {present} partitions, wanted are {spec.partitions}; {how}"
