"""The stack's `.env`: made from `.env.example` at the first start with secrets of its own, read and changed here."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from pathlib import Path

from dotenv import dotenv_values, set_key, unset_key

from fraud_filter.errors import UsageError
from fraud_filter.home import HOME

EXAMPLE = HOME / ".env.example"
COMPOSE_FILE = HOME / "docker-compose.yml"
#: On top of the other, in the secure stack.
SECURE_FILE = HOME / "docker-compose.secure.yml"
#: On top of it, against a Kafka that is there already.
EXISTING_KAFKA_FILE = HOME / "docker-compose.existing-kafka.yml"
#: Folder beside `.env` for files that settings name.
CONF = "conf"

#: Filled in where `.env.example` leaves them empty.
SECRETS = ("SPARK_SECRET", "GRAFANA_PASSWORD")
_SECRET_BYTES = 24
_VARIABLE = re.compile(r"\$\{(\w+)")


def make(path: Path, example: Path = EXAMPLE) -> None:
    """Writes `path` from the example, readable by its owner only, with generated secrets.

    Raises:
        UsageError: the file can't be written.
    """
    try:
        (path.parent / CONF).mkdir(exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(example.read_text(encoding="utf-8"), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{error.filename or path} can't be copied to {path}: {error.strerror}") from None
    for name in SECRETS:
        change(path, name, secrets.token_urlsafe(_SECRET_BYTES))


def read(path: Path) -> dict[str, str]:
    """Names and values of the file, as they are written; a name without `=` has no value.

    Raises:
        UsageError: the file can't be read.
    """
    try:
        with path.open(encoding="utf-8") as lines:
            return {name: value or "" for name, value in dotenv_values(stream=lines, interpolate=False).items()}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read: {getattr(error, 'strerror', None) or error}") from None


def change(path: Path, name: str, value: str) -> None:
    """Sets one name, leaves every other line as it is, and the file readable by its owner only."""
    set_key(path, name, value, quote_mode="never")
    path.chmod(0o600)


def remove(path: Path, name: str) -> None:
    """Takes a name out of the file, where it is there."""
    if name in read(path):
        unset_key(path, name, quote_mode="never")
        path.chmod(0o600)


def compose_files(values: dict[str, str]) -> list[Path]:
    """The Compose files that the stack is made of: COMPOSE_FILE, as Compose itself reads it, or the only one.

    Raises:
        UsageError: one of them is not there, or not beside the others: a Compose file can have anything run as root. Or
            two of them contradict each other.
    """
    files = [HOME / name for name in values.get("COMPOSE_FILE", "").split(":") if name] or [COMPOSE_FILE]
    for file in files:
        if not file.resolve().is_relative_to(HOME):
            raise UsageError(f"COMPOSE_FILE: {file} is not in {HOME}: look at it, and copy it there")
        if not file.exists():
            raise UsageError(f"COMPOSE_FILE: there is no {file}: give {COMPOSE_FILE.name}, or leave it empty")
    if SECURE_FILE in files and EXISTING_KAFKA_FILE in files:
        raise UsageError(
            f"COMPOSE_FILE: {SECURE_FILE.name} gives logins to the stack's own broker, which "
            f"{EXISTING_KAFKA_FILE.name} leaves out: take one of the two away"
        )
    return files


def variables(files: Iterable[Path]) -> set[str]:
    """Names that Compose files take from `.env` or the environment."""
    return {name for file in files for name in _VARIABLE.findall(file.read_text(encoding="utf-8"))}
