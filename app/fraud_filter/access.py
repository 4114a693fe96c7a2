"""Users of Kafka and their rights, from `kafka/access.yml`: SCRAM credentials and ACLs. Knows no topic's settings."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Literal

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it lists not all that it exports
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from pydantic import BaseModel, ConfigDict, Field

from fraud_filter.config import HOME, Settings
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.kafka_client import librdkafka_config, read_password
from fraud_filter.kafka_files import own_name, read_file

ACCESS_FILE = HOME / "kafka/access.yml"

#: More rounds make a stolen hash harder to guess. Kafka's own tools take 4096; our passwords are random.
_ITERATIONS = 8192
_ANY_HOST = "*"


class User(BaseModel):
    """A user and what it may do with each topic, and with consumer groups whose names begin so."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    topics: dict[str, list[Literal["READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS"]]] = Field(default_factory=dict)
    group_prefixes: dict[str, list[Literal["READ", "DESCRIBE"]]] = Field(default_factory=dict)

    @property
    def principal(self) -> str:
        """Kafka's name of it."""
        return f"User:{self.name}"

    def rights(self) -> set[AclBinding]:
        """One ACL for each operation."""
        topics = {
            self._right(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, operation)
            for topic, operations in self.topics.items()
            for operation in operations
        }
        groups = {
            self._right(ResourceType.GROUP, prefix, ResourcePatternType.PREFIXED, operation)
            for prefix, operations in self.group_prefixes.items()
            for operation in operations
        }
        return topics | groups

    def _right(self, kind: ResourceType, name: str, pattern: ResourcePatternType, operation: str) -> AclBinding:
        allowed = AclPermissionType.ALLOW
        return AclBinding(kind, name, pattern, self.principal, _ANY_HOST, AclOperation[operation], allowed)


class _AccessFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    users: list[User] = Field(min_length=1)


def load_users(settings: Settings, access_file: Path = ACCESS_FILE) -> list[User]:
    """Reads the file; the three topics that the settings know get the settings' names.

    Raises:
        UsageError: the file can't be read or does not describe users, or names one twice.
    """
    users = read_file(access_file, "access file", _AccessFile).users
    for user in users:
        if sum(other.name == user.name for other in users) > 1:
            raise UsageError(f"access file {access_file}: user {user.name!r} is there twice: keep one of them")
    return [
        user.model_copy(update={"topics": {own_name(name, settings): allowed for name, allowed in user.topics.items()}})
        for user in users
    ]


def grant(settings: Settings, passwords: Path, access_file: Path = ACCESS_FILE) -> list[User]:
    """Makes the users, or gives them new passwords, and makes their rights what the file says.

    Args:
        settings: which brokers; we must be one of their administrators.
        passwords: directory with a file for each user, of the user's name, that holds the password alone.
        access_file: YAML like `kafka/access.yml`.

    Returns:
        The users.

    Raises:
        UsageError: a file can't be used.
        FraudFilterError: the brokers do not answer, or refuse.
    """
    users = load_users(settings, access_file)
    secrets = {user.name: read_password(passwords / user.name) for user in users}
    admin = AdminClient(librdkafka_config(settings))
    timeout = {"request_timeout": settings.kafka_timeout_s}
    try:
        scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, _ITERATIONS)
        upserts: list[Any] = [
            UserScramCredentialUpsertion(name, scram, secret.encode()) for name, secret in secrets.items()
        ]
        _all(admin.alter_user_scram_credentials(upserts, **timeout).values())
        wanted = set().union(*(user.rights() for user in users))
        present = {right for user in users for right in admin.describe_acls(_all_of(user), **timeout).result()}
        if wanted - present:
            _all(admin.create_acls(list(wanted - present), **timeout).values())
        if present - wanted:
            _all(admin.delete_acls([_filter(right) for right in present - wanted], **timeout).values())
    except KafkaException as error:
        raise FraudFilterError(
            f"the Kafka brokers at {settings.kafka_bootstrap_servers!r} (KAFKA_BOOTSTRAP_SERVERS) did not change their "
            f"users and rights: {error.args[0].str()}"
        ) from None
    return users


def _all(answers: Iterable[Future[Any]]) -> None:
    for answer in answers:
        answer.result()


def _all_of(user: User) -> AclBindingFilter:
    anything: Any = None
    return AclBindingFilter(
        ResourceType.ANY,
        anything,
        ResourcePatternType.ANY,
        user.principal,
        anything,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )


def _filter(right: AclBinding) -> AclBindingFilter:
    """Matches this right and no other."""
    return AclBindingFilter(
        right.restype,
        right.name,
        right.resource_pattern_type,
        right.principal,
        right.host,
        right.operation,
        right.permission_type,
    )
