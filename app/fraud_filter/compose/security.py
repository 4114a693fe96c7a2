"""Turns the secure stack on and off: its second Compose file, its secrets, and how programs on this machine get in."""

from __future__ import annotations

from pathlib import Path

import click

from fraud_filter.compose import env_file, secrets
from fraud_filter.compose.stack import Stack
from fraud_filter.config import env_name
from fraud_filter.errors import UsageError

_DIRECTORY = "SECRETS_DIR"
_VERSION = "SECRETS_VERSION"


def switch(stack: Stack, *, secure: bool) -> None:
    """Writes into `.env` which of the two stacks it is, from now on.

    Raises:
        UsageError: the stack has no broker of its own.
    """
    if secure == stack.secure:
        return
    if secure and not stack.own_kafka:
        raise UsageError(
            f"--secure gives logins to the stack's own broker: take {env_file.EXISTING_KAFKA_FILE.name} out of "
            f"COMPOSE_FILE in {stack.env}, or leave --secure away"
        )
    files = (env_file.COMPOSE_FILE, env_file.SECURE_FILE) if secure else (env_file.COMPOSE_FILE,)
    stack.change("COMPOSE_FILE", ":".join(file.name for file in files))
    if not secure:
        for name in (_VERSION, *_access(Path())):
            stack.remove(name)


def prepare(stack: Stack) -> None:
    """Makes secrets of a secure stack that are missing or end soon, and writes into `.env` where they are.

    Does nothing for the other stack.

    Raises:
        UsageError: they can't be made.
    """
    if not stack.secure:
        return
    directory = Path(stack.values.get(_DIRECTORY) or stack.env.parent / ".secrets").absolute()
    version = secrets.make(directory, click.echo)
    for name, value in {_DIRECTORY: str(directory), _VERSION: version, **_access(directory)}.items():
        if stack.values.get(name) != value:
            stack.change(name, value)


def _access(directory: Path) -> dict[str, str]:
    """The program's own settings: it is an operator at the broker's port on this machine."""
    return {
        env_name("kafka_security_protocol"): "SASL_SSL",
        env_name("kafka_sasl_mechanism"): "SCRAM-SHA-512",
        env_name("kafka_sasl_username"): secrets.OPERATOR,
        env_name("kafka_sasl_password_file"): str(directory / secrets.OPERATOR),
        env_name("kafka_ssl_ca"): str(directory / secrets.CA),
    }
