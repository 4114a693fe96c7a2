"""The stacks for all tests here, brought up by `fraud-filter up`. KEEP_STACK=1 leaves the first running."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployed import Deployed, make_env
from fraud_filter.compose import engine
from fraud_filter.errors import UsageError

#: Of its own: the other tests' stack stays as it is. `.ci/run` knows the name.
_SECURE_PROJECT = "fraud-filter-test-secure"
#: Bringing it up may have to build every image.
_COLD_S = 1200


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.timeout(_COLD_S))
    # Those on the secure stack come last: it is not there before.
    items.sort(key=lambda item: here in item.path.parents and _is_secure(item))


def _is_secure(item: pytest.Item) -> bool:
    chosen = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return "secured" in (*getattr(item, "fixturenames", ()), *chosen)


@pytest.fixture(scope="session", autouse=True)
def docker_engine(compose: None) -> None:  # noqa: ARG001
    try:
        engine.connect()
    except UsageError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def stack(docker_engine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:  # noqa: ARG001
    deployed = Deployed(make_env(tmp_path_factory.mktemp("stack") / ".env", FRAUD_MODE="micro-batch"))
    try:
        up = deployed.call("up", "--timeout", "500")
        assert up.returncode == 0, up.stdout
        assert "all healthy after" in up.stdout
        yield deployed
    finally:
        if os.environ.get("KEEP_STACK") != "1":
            deployed.call("down", "--volumes")


@pytest.fixture(scope="session")
def secured(docker_engine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:  # noqa: ARG001
    env = tmp_path_factory.mktemp("secure") / ".env"
    changes = {"COMPOSE_PROJECT_NAME": _SECURE_PROJECT, "FRAUD_MODE": "continuous", "GENERATOR_RATE": "50"}
    deployed = Deployed(make_env(env, **changes))
    try:
        up = deployed.call("up", "--secure", "--timeout", "500")
        assert up.returncode == 0, up.stdout
        yield deployed
    finally:
        deployed.call("down", "--volumes")
