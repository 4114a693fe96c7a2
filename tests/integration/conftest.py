"""One stack for all tests here, brought up by `fraud-filter up`. KEEP_STACK=1 leaves it running."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployed import Deployed, make_env
from fraud_filter.compose import engine
from fraud_filter.errors import UsageError

#: Bringing it up may have to build every image.
_COLD_S = 1200


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.timeout(_COLD_S))


@pytest.fixture(scope="session", autouse=True)
def docker_engine() -> None:
    try:
        engine.connect()
    except UsageError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def stack(docker_engine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:  # noqa: ARG001
    deployed = Deployed(make_env(tmp_path_factory.mktemp("stack") / ".env", FRAUD_MODE="micro-batch"))
    try:
        up = deployed.call("up")
        assert up.returncode == 0, up.stdout
        assert "all healthy after" in up.stdout
        yield deployed
    finally:
        if os.environ.get("KEEP_STACK") != "1":
            deployed.call("down", "--volumes")
