"""Reads the settings. The only module that reads the environment for them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dotenv.parser import parse_stream
from pydantic import ValidationError

from fraud_filter.config.naming import env_name, named, refused
from fraud_filter.config.outputs import output_topics
from fraud_filter.config.settings import ENV_PREFIX, Settings
from fraud_filter.errors import UsageError
from fraud_filter.home import HOME
from fraud_filter.text.nearest import did_you_mean

_ENV_FILE = "FRAUD_ENV_FILE"
_DEFAULT = ".env"
#: Names that others give: Compose files to a container's limits, Kubernetes to the addresses of a service (its
#: documentation, "Service", Discovering services); both begin with the service's name. And what tests are told.
_OTHERS = re.compile(r"FRAUD_(FILTER|TEST)_.*|.*_SERVICE_(HOST|PORT)(_.*)?|.*_PORT_\d+_(TCP|UDP|SCTP)(_.*)?")
#: Settings of former versions, and what to do instead.
GONE = {
    "rate_rows_per_second": 'give rowsPerSecond in source_options: {"rowsPerSecond": "100"}',
    "rate_partitions": 'give numPartitions in source_options: {"numPartitions": "2"}',
    "socket_server": 'give host and port in source_options: {"host": "127.0.0.1", "port": "9999"}',
    "source_format": "give the format's name as source",
    "restart_backoff_max_s": "the longest wait is 30 seconds, or restart_backoff_s where that is longer",
    "restart_reset_s": "a run of 120 seconds counts as progress",
    "monitoring": "metrics and the watchdog are always on",
    "generator_port": "give the port to `fraud-filter generate --metrics-port`",
}
#: What only the fraud filter knows.
_FILTER_ONLY = (
    "payment_schema", "record_format", "time_unit", "rules", "features_unsupported", "emit", "approved_topic",
    "rejected_topic", "velocity_payments", "velocity_lag",
)  # fmt: skip


def default_env_file() -> Path:
    """The file that settings are read from besides the environment."""
    return Path(os.environ.get(_ENV_FILE, _DEFAULT))


def check_env_file(file: Path) -> None:
    """Refuses a file of settings that others could have written: options in it can make this program run their code.

    Raises:
        UsageError: it belongs to another user, or others can write it.
    """
    try:
        found = file.stat()
    except OSError:
        return  # reading it says why
    if not stat.S_ISREG(found.st_mode):
        return
    if found.st_uid not in (os.geteuid(), 0, HOME.stat().st_uid):
        raise UsageError(
            f"{file} belongs to another user (id {found.st_uid}): copy what is right in it to a file of yours"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(
            f"{file} can be written by others, and could make this program run their code: chmod go-w {file}"
        )


def load(overrides: dict[str, Any] | None = None, env_file: Path | None = None) -> Settings:
    """Reads the environment and `.env` (or `env_file`); `overrides` (the command line, by setting name) win.

    Raises:
        UsageError: a value is not accepted; the message names each setting, its value and what to give instead. Or a
            name is that of no setting, or others could have written the file.
    """
    file = env_file or default_env_file()
    check_env_file(file)
    try:
        _check_names(file)
        settings = Settings(_env_file=file, **(overrides or {}))  # type: ignore[call-arg]
    except ValidationError as error:
        raise UsageError("\n".join(_explain(detail) for detail in error.errors())) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{file} (FRAUD_ENV_FILE) can't be read: {reason}") from None
    _check_query(settings)
    _check_topics(settings)
    return settings


def _check_query(settings: Settings) -> None:
    """What the fraud filter alone knows means nothing to a query of the user's."""
    fields = Settings.model_fields
    given = [name for name in _FILTER_ONLY if getattr(settings, name) != fields[name].default] if settings.query else []
    if given:
        names = ", ".join(map(named, given))
        reason = f"is a query of yours, which has no {', '.join(given)}"
        raise refused("query", settings.query, reason, f"take away the {names}, or the query")


def _check_topics(settings: Settings) -> None:
    """A filter that reads what it writes never ends."""
    for setting in output_topics(settings):
        name = getattr(settings, setting)
        if name == settings.input_topic:
            raise refused(setting, name, "is the input_topic already", "decisions need topics of their own")


def _check_names(file: Path) -> None:
    check_names(os.environ, "the environment")
    check_names(_names_in(file), str(file))


def check_names(names: Iterable[str], place: str) -> None:
    """Refuses names that begin as those of settings do, in whatever case, and are none: slips of the pen.

    Args:
        place: where the names stand, such as "the environment".

    Raises:
        UsageError: names each of them and the setting that is most like it, a line each.
    """
    settings = Settings.model_fields
    # Those without prefix are read with it, too.
    known = {_ENV_FILE, *map(env_name, settings), *((ENV_PREFIX + name).upper() for name in settings)}
    given = {name.upper(): name for name in names}
    unknown = [
        name
        for upper, name in given.items()
        if upper.startswith(ENV_PREFIX) and upper not in known and not _OTHERS.fullmatch(upper)
    ]
    if unknown:
        raise UsageError("\n".join(_refuse_name(name, place, known) for name in unknown))


def _refuse_name(name: str, place: str, known: set[str]) -> str:
    if remedy := GONE.get(name.lower().removeprefix(ENV_PREFIX.lower())):
        return f"{name} in {place} is no setting any more: {remedy}"
    meant = did_you_mean(name.upper(), known, ENV_PREFIX)
    return f"{name} in {place} is no setting{meant}; change it or take it away (`fraud-filter run --help` lists them)"


def _names_in(file: Path) -> list[str]:
    """The names in a file of settings; none where there is no such file.

    Raises:
        OSError, UnicodeDecodeError: it can't be read.
        UsageError: a line is no `NAME=value`; it is not repeated, as it may be a secret.
    """
    if not file.is_file():
        return []
    with file.open(encoding="utf-8") as lines:
        bindings = list(parse_stream(lines))
    for binding in bindings:
        if binding.error or (binding.key is not None and binding.value is None):
            text = binding.original.string
            number = binding.original.line + len(text) - len(text.lstrip("\n"))
            raise UsageError(f"{file}, line {number} is no NAME=value: mend it or take it away")
    return [binding.key for binding in bindings if binding.key]


def _explain(detail: Any) -> str:
    name = str(detail["loc"][0]) if detail["loc"] else "configuration"
    setting = next((known for known in Settings.model_fields if name in (known, env_name(known))), name)
    reason = str(detail["msg"]).removeprefix("Value error, ")
    # Options may hold secrets, and where their text is no JSON nobody knows which part of it is one.
    options = setting in Settings.model_fields and Settings.model_fields[setting].annotation == dict[str, str]
    given = "the text given" if options else repr(detail.get("input"))
    return f"{named(setting)}: {given} is not accepted: {reason}"
