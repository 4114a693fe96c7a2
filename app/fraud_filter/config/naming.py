"""The names of a setting, and the one way to refuse what it was given."""

from __future__ import annotations

from pydantic import SecretStr

from fraud_filter.config.settings import ENV_PREFIX, Settings
from fraud_filter.errors import UsageError

#: Settings whose environment name has no prefix.
_UNPREFIXED = {
    name: field.validation_alias
    for name, field in Settings.model_fields.items()
    if isinstance(field.validation_alias, str)
}


def env_name(setting: str) -> str:
    """The environment variable of a setting, such as FRAUD_MODE for mode."""
    return _UNPREFIXED.get(setting) or (ENV_PREFIX + setting).upper()


def option_name(setting: str) -> str | None:
    """The option of a setting, such as --mode; None for a secret: every process can read a command line."""
    field = Settings.model_fields.get(setting)
    return None if field and field.annotation is SecretStr else f"--{setting.replace('_', '-')}"


def named(setting: str) -> str:
    """A setting by all its names: `setting mode (--mode, FRAUD_MODE)`."""
    names = ", ".join(filter(None, (option_name(setting), env_name(setting))))
    return f"setting {setting} ({names})"


def refused(setting: str, value: object, reason: str, remedy: str = "") -> UsageError:
    """The error that refuses what a setting was given.

    Args:
        value: a text is quoted; a path is not.
        reason: goes on after the value: "can't be written", "is too short".
        remedy: what to do, where the reason does not say it.
    """
    given = repr(value) if isinstance(value, str) else str(value)
    return UsageError(f"{named(setting)}: {given} {reason}{remedy and f'; {remedy}'}")
