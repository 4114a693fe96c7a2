"""A Compose project as it is written down: no engine is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from fraud_filter.compose import env_file
from fraud_filter.compose.stack import Stack


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    """With an `.env` that was just made."""
    for name in ("COMPOSE_FILE", "SECRETS_DIR", "PROMETHEUS_PORT"):
        monkeypatch.delenv(name, raising=False)
    env = tmp_path / ".env"
    env_file.make(env)
    return Stack(cast(Any, None), env, env_file.read(env))
