"""Users of Kafka and their rights, as `kafka/access.yml` declares them, and the change that makes a cluster's those."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it does not list all that it exports
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from pydantic import BaseModel, ConfigDict, Field

from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.home import HOME
from fraud_filter.kafka.client import librdkafka_config, read_password
from fraud_filter.kafka.refusals import describe_error, is_unanswered, no_broker
from fraud_filter.kafka.topics import is_used, own_name, read_file

ACCESS_FILE = HOME / "kafka/access.yml"

#: What Kafka puts before a user's name in a right.
PRINCIPAL = "User:"

_ANY_HOST = "*"

#: What a user may do with a topic.
Operation = Literal["READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS"]


class User(BaseModel):
    """A user and what it may do with each topic, and with consumer groups whose names begin so."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    topics: dict[str, list[Operation]] = Field(default_factory=dict)
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
    """Reads the file; the topics that the settings know get the settings' names.

    A topic that serves several kinds of decisions has the rights of all of them.

    Raises:
        UsageError: the file can't be read or does not describe users, or names one twice.
    """
    users = read_file(access_file, "access file", _AccessFile).users
    for user in users:
        if sum(other.name == user.name for other in users) > 1:
            raise UsageError(f"access file {access_file}: user {user.name!r} is there twice: keep one of them")
    return [user.model_copy(update={"topics": _own_topics(user, settings)}) for user in users]


def _own_topics(user: User, settings: Settings) -> dict[str, list[Operation]]:
    topics: dict[str, list[Operation]] = {}
    for name, allowed in user.topics.items():
        if is_used(name, settings):
            known = topics.setdefault(own_name(name, settings), [])
            known += [operation for operation in allowed if operation not in known]
    return topics


#: How the declared users log in.
_MECHANISM = ScramMechanism.SCRAM_SHA_512

#: More rounds make a stolen hash harder to guess. Kafka's own tools take 4096; our passwords are random.
_ITERATIONS = 8192

#: What an administrator may do with the cluster.
_NEEDED = {AclOperation.DESCRIBE, AclOperation.ALTER}

#: A user's name, and how it may log in.
Login = tuple[str, ScramMechanism]


@dataclass(frozen=True)
class Change:
    """What has to be added to a cluster and what to be removed; `left` is what it has beyond the file, and keeps."""

    added_logins: frozenset[Login]
    added_rights: frozenset[AclBinding]
    removed_logins: frozenset[Login]
    removed_rights: frozenset[AclBinding]
    left: tuple[str, ...]

    def lines(self) -> list[str]:
        """A line for each login and right, `+` or `-` before it, sorted by user, logins first."""
        signed = [
            *((name, f"+ {name}: {_login(kind)}") for name, kind in self.added_logins),
            *((name, f"- {name}: {_login(kind)}") for name, kind in self.removed_logins),
            *((_name(right), f"+ {_name(right)}: {_right(right)}") for right in self.added_rights),
            *((_name(right), f"- {_name(right)}: {_right(right)}") for right in self.removed_rights),
        ]
        return [line for _, line in sorted(signed, key=lambda named: (named[0], " login " not in named[1], named[1]))]


class Cluster:
    """The users and rights of the brokers that the settings name; we must be one of their administrators."""

    def __init__(self, settings: Settings) -> None:
        """Connects at the first question.

        Raises:
            UsageError: name, password, certificate or key are missing or can't be used.
        """
        self._settings = settings
        self._admin: Any = AdminClient(librdkafka_config(settings))
        self._timeout = {"request_timeout": settings.kafka_timeout_s}
        #: Without it nobody could repair what a wrong file has removed.
        self._own = settings.kafka_sasl_username if settings.kafka_security_protocol.startswith("SASL_") else ""

    def compare(self, users: Sequence[User], *, only_declared: bool) -> Change:
        """What differs from what is declared.

        Args:
            users: those of the access file.
            only_declared: whether users and rights that are not in the file go, except for the login that we use
                ourselves. Otherwise only a declared user's own undeclared rights do.

        Raises:
            NoBrokerError: no broker answers within `kafka_timeout_s` seconds.
            FraudFilterError: the brokers refuse.
        """
        try:
            self._require_rights()
            logins = self._logins()
            rights = frozenset(self._admin.describe_acls(_FILTER_ALL, **self._timeout).result())
        except KafkaException as error:
            raise self._failed("do not tell", error) from None
        declared = {user.principal for user in users}
        wanted = frozenset().union(*(user.rights() for user in users))
        wanted_logins = {(user.name, _MECHANISM) for user in users}
        extra_rights = {right for right in rights - wanted if right.principal != PRINCIPAL + self._own}
        extra_logins = {login for login in logins - wanted_logins if login[0] != self._own}
        gone = extra_rights if only_declared else {right for right in extra_rights if right.principal in declared}
        return Change(
            added_logins=frozenset(wanted_logins - logins),
            added_rights=wanted - rights,
            removed_logins=frozenset(extra_logins if only_declared else ()),
            removed_rights=frozenset(gone),
            left=() if only_declared else _names(extra_logins, extra_rights - gone),
        )

    def apply(self, change: Change, users: Sequence[User], passwords: Path) -> None:
        """Gives all declared users their passwords, and changes what differs.

        Args:
            passwords: directory with a file for each user, of the user's name, that holds the password alone.

        Raises:
            UsageError: a password can't be read; nothing was changed.
            NoBrokerError: no broker answers within `kafka_timeout_s` seconds.
            FraudFilterError: the brokers refuse.
        """
        scram = ScramCredentialInfo(_MECHANISM, _ITERATIONS)
        logins: list[Any] = [
            UserScramCredentialUpsertion(user.name, scram, read_password(passwords / user.name).encode())
            for user in users
        ]
        rights = [_filter(right) for right in change.removed_rights]
        try:
            # Rights first: a connection that is open stays logged in without its user, and can do nothing then.
            if rights:
                _all(self._admin.delete_acls(rights, **self._timeout).values())
            for login in change.removed_logins:  # one a request: Kafka takes no user twice in one
                deletion: list[Any] = [UserScramCredentialDeletion(*login)]
                _all(self._admin.alter_user_scram_credentials(deletion, **self._timeout).values())
            _all(self._admin.alter_user_scram_credentials(logins, **self._timeout).values())
            if change.added_rights:
                _all(self._admin.create_acls(list(change.added_rights), **self._timeout).values())
        except KafkaException as error:
            raise self._failed("did not change", error) from None

    def _logins(self) -> set[Login]:
        described = self._admin.describe_user_scram_credentials(**self._timeout)
        return {
            (name, info.mechanism)
            for name, credentials in described.result().items()
            for info in credentials.scram_credential_infos
        }

    def _require_rights(self) -> None:
        """Asked first: without the right, librdkafka 2.16 reports an empty list of rights, and crashes over logins."""
        described = self._admin.describe_cluster(include_authorized_operations=True, **self._timeout)
        if not set(described.result().authorized_operations or ()) >= _NEEDED:
            raise self._refused("do not tell", "that is for their administrators")

    def _failed(self, what: str, error: KafkaException) -> FraudFilterError:
        if is_unanswered(error):
            return no_broker(self._settings, error)
        return self._refused(what, describe_error(error))

    def _refused(self, what: str, reason: str) -> FraudFilterError:
        return FraudFilterError(
            f"the Kafka brokers at {self._settings.kafka_bootstrap_servers!r} (KAFKA_BOOTSTRAP_SERVERS) {what} their "
            f"users and rights: {reason}"
        )


def _names(logins: Iterable[Login], rights: Iterable[AclBinding]) -> tuple[str, ...]:
    return tuple(sorted({name for name, _ in logins} | {_name(right) for right in rights}))


def _name(right: AclBinding) -> str:
    return str(right.principal).removeprefix(PRINCIPAL)


def _login(mechanism: ScramMechanism) -> str:
    return f"login with {mechanism.name.replace('_', '-')}"


def _right(right: AclBinding) -> str:
    kind, operation, permission = ResourceType(right.restype), AclOperation(right.operation), right.permission_type
    denied = "" if permission == AclPermissionType.ALLOW else "DENY "
    prefix = "s that begin with" if right.resource_pattern_type == ResourcePatternType.PREFIXED else ""
    host = "" if right.host == "*" else f" from {right.host}"
    return f"{denied}{operation.name} on {kind.name.lower()}{prefix} {right.name}{host}"


def _all(answers: Iterable[Future[Any]]) -> None:
    for answer in answers:
        answer.result()


_ANYTHING: Any = None

_FILTER_ALL = AclBindingFilter(
    ResourceType.ANY,
    _ANYTHING,
    ResourcePatternType.ANY,
    _ANYTHING,
    _ANYTHING,
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
