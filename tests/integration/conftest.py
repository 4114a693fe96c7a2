"""The stacks for all tests here, brought up by `fraud-filter up`. KEEP_STACK=1 leaves the first running."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from deployed import Deployed, make_env
from fraud_filter.compose.stack import connect
from fraud_filter.errors import UsageError

#: Of its own: the other tests' stack stays as it is. `.ci/run` knows the name.
_SECURE_PROJECT = "fraud-filter-test-secure"
#: Those that every mode runs; with a standby the stack has the rules of `.env.example`, with velocity.
_RULES = "app/rules.yml"
#: Bringing it up may have to build every image.
_COLD_S = 1200


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.timeout(_COLD_S))
    items.sort(key=lambda item: _stack_number(item) if here in item.path.parents else 0)


def _stack_number(item: pytest.Item) -> int:
    """Those with a stack of their own come first: a shared one stays up once it is needed, and takes processor time.

    The shared one is plain at first, and then gets a standby.
    """
    chosen = item.callspec.params.values() if hasattr(item, "callspec") else ()
    wanted = (*getattr(item, "fixturenames", ()), *chosen)
    stages = ("stack", "pair", "secured")
    return max((number for number, name in enumerate(stages, 1) if name in wanted), default=0)


@pytest.fixture(scope="session", autouse=True)
def docker_engine(compose: None) -> None:  # noqa: ARG001
    try:
        connect()
    except UsageError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def shared(docker_engine: None) -> Iterator[ExitStack]:  # noqa: ARG001
    """Takes down the shared stack that is up; there is one at a time, for each takes much of two processors."""
    with ExitStack() as up:
        yield up


@pytest.fixture(scope="session")
def stack(shared: ExitStack, tmp_path_factory: pytest.TempPathFactory) -> Deployed:
    deployed = Deployed(
        make_env(tmp_path_factory.mktemp("stack") / ".env", FRAUD_MODE="micro-batch", FRAUD_RULES=_RULES)
    )
    if os.environ.get("KEEP_STACK") != "1":
        shared.callback(deployed.call, "down", "--volumes")
    up = deployed.call("up", "--timeout", "500")
    assert up.returncode == 0, up.stdout
    assert "all healthy after" in up.stdout
    return deployed


@pytest.fixture(scope="session")
def secured(shared: ExitStack, tmp_path_factory: pytest.TempPathFactory) -> Deployed:
    shared.close()
    env = tmp_path_factory.mktemp("secure") / ".env"
    changes = {"COMPOSE_PROJECT_NAME": _SECURE_PROJECT, "FRAUD_MODE": "continuous", "GENERATOR_RATE": "50"}
    changes["FRAUD_RULES"] = _RULES
    deployed = Deployed(make_env(env, **changes))
    shared.callback(deployed.call, "down", "--volumes")
    up = deployed.call("up", "--secure", "--timeout", "500")
    assert up.returncode == 0, up.stdout
    return deployed
