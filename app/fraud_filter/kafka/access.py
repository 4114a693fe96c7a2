"""Users of Kafka and their rights, as `kafka/access.yml` declares them. Knows no broker and no topic's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it lists not all that it exports
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from pydantic import BaseModel, ConfigDict, Field

from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from fraud_filter.home import HOME
from fraud_filter.kafka.files import own_name, read_file

ACCESS_FILE = HOME / "kafka/access.yml"

#: What Kafka puts before a user's name in a right.
PRINCIPAL = "User:"
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
        return PRINCIPAL + self.name

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
