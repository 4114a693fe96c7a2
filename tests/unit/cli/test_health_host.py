"""An address at which no filter can be ends in one sentence."""

from __future__ import annotations

import pytest

from fraud_filter.cli.watch import ask
from fraud_filter.config import load


@pytest.mark.parametrize("host", ["a b", "\x00", "\x1b[2J", " ", "x" * 300, "a..b", "é" * 70, "[", "::1", "a/b"])
def test_health_names_a_host_that_is_none(host: str) -> None:
    verdict = ask(load({"metrics_host": host, "metrics_port": 1}))
    assert verdict["healthy"] is False
    assert verdict["line"].startswith("no filter answers at http://")
    assert verdict["line"].isprintable()
