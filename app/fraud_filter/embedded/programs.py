"""How `fraud-filter`'s own verbs are run as child processes: their command line and their environment."""

from __future__ import annotations

import json
import sys

from pydantic import SecretStr

from fraud_filter.config import Settings, env_name


def environment(settings: Settings) -> dict[str, str]:
    """The settings as environment variables, so that a child runs with exactly these; no secrets."""
    values = settings.model_dump(mode="json")
    return {
        "PYTHONUNBUFFERED": "1",
        **{
            env_name(name): value if isinstance(value, str) else json.dumps(value)
            for name, value in values.items()
            if not isinstance(getattr(settings, name), SecretStr)
        },
    }


def verb(name: str) -> list[str]:
    """The command line of `fraud-filter NAME`, without arguments."""
    return [sys.executable, "-m", "fraud_filter", name]
