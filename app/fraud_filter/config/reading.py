"""Reads the settings. The only module that reads the environment for them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fraud_filter.config import setting_names
from fraud_filter.config.naming import env_name, named, refused
from fraud_filter.config.outputs import output_topics
from fraud_filter.config.settings import ENV_PREFIX, Settings
from fraud_filter.errors import UsageError
from fraud_filter.home import HOME

_ENV_FILE = "FRAUD_ENV_FILE"
_DEFAULT = ".env"


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
            name is that of no setting (`setting_names`), or others could have written the file.
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
    _check_topics(settings)
    return settings


def _check_topics(settings: Settings) -> None:
    """A filter that reads what it writes never ends."""
    for setting in output_topics(settings):
        name = getattr(settings, setting)
        if name == settings.input_topic:
            raise refused(setting, name, "is the input_topic already", "decisions need topics of their own")


def _check_names(file: Path) -> None:
    prefixed = {
        (ENV_PREFIX + name).upper() for name in Settings.model_fields
    }  # those without prefix are read with it, too
    known = {_ENV_FILE, *map(env_name, Settings.model_fields), *prefixed}
    setting_names.check(os.environ, "the environment", known, ENV_PREFIX)
    setting_names.check(setting_names.read(file), str(file), known, ENV_PREFIX)


def _explain(detail: Any) -> str:
    name = str(detail["loc"][0]) if detail["loc"] else "configuration"
    setting = next((known for known in Settings.model_fields if name in (known, env_name(known))), name)
    reason = str(detail["msg"]).removeprefix("Value error, ")
    # Options may hold secrets, and where their text is no JSON nobody knows which part of it is one.
    options = setting in Settings.model_fields and Settings.model_fields[setting].annotation == dict[str, str]
    given = "the text given" if options else repr(detail.get("input"))
    return f"{named(setting)}: {given} is not accepted: {reason}"
