"""Where the stack's Prometheus is, told without a Docker Engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from fraud_filter.compose.addresses import find_prometheus
from fraud_filter.errors import UsageError


def test_the_port_is_that_of_the_environment_file(tmp_path: Path) -> None:
    env = tmp_path / ".env"
    env.write_text("PROMETHEUS_PORT=19090\n")
    assert find_prometheus(env).address == "http://127.0.0.1:19090"


def test_the_environment_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = tmp_path / ".env"
    env.write_text("PROMETHEUS_PORT=19090\n")
    monkeypatch.setenv("PROMETHEUS_PORT", "29090")
    assert find_prometheus(env).address == "http://127.0.0.1:29090"


@pytest.mark.parametrize("text", [None, "", "PROMETHEUS_PORT=\n"])
def test_without_one_it_is_the_examples(tmp_path: Path, text: str | None) -> None:
    env = tmp_path / ".env"
    if text is not None:
        env.write_text(text)
    assert find_prometheus(env).address == "http://127.0.0.1:9090"


def test_a_file_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    env = tmp_path / ".env"
    env.write_bytes(b"\xff\xfe=")
    with pytest.raises(UsageError, match=r"\.env can't be read"):
        find_prometheus(env)
