"""Where the stack's Prometheus is."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from fraud_filter.compose.prometheus import find_prometheus
from fraud_filter.compose.stack import Stack


def test_the_port_is_that_of_the_environment_file(tmp_path: Path) -> None:
    stack = Stack(cast(Any, None), tmp_path / ".env", {"PROMETHEUS_PORT": "19090"})
    assert find_prometheus(stack).address == "http://127.0.0.1:19090"
