"""The real broker that all embedded tests share, and topics of their own for each test."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import KafkaAdminClient
from kafka.errors import NodeNotReadyError
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from fraud_filter.config import load
from fraud_filter.java.jars import resolve_jars
from fraud_filter.kafka.topics import load_topics
from lab.harness.broker import Broker
from lab.harness.java import require_java
from lab.harness.processes import stop_signals
from lab.harness.supplies import KAFKA_LOCK, SPARK_LOCK, ensure_class_archive
from lab.harness.workspace import Workspace
from outputs import Outputs
from running import Stage, StageMaker, create_topic

TopicMaker = Callable[..., str]


@pytest.fixture(scope="session", autouse=True)
def java_home() -> Path:
    """A usable Java, got by the program's own means, in JAVA_HOME for everything that the tests start."""
    home = require_java()
    os.environ["JAVA_HOME"] = str(home)
    ensure_class_archive(home, print)
    # Here, because programs that tests start with few variables do not know the machine's proxy or its certificates.
    resolve_jars(SPARK_LOCK)
    # The second compiler costs more than it gives where a query runs for seconds: half of the tests' CPU time.
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
    return home


@pytest.fixture(scope="module", autouse=True)
def seldom_polls() -> Iterator[None]:
    """At the default of 1 ms continuous mode kept 0.73 cores of filter and broker busy at rest, here 0.19."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FRAUD_CONTINUOUS_FETCH_MAX_WAIT_MS", "20")
        yield


@pytest.fixture(scope="session")
def kafka_jars() -> list[Path]:
    return resolve_jars(KAFKA_LOCK)


@pytest.fixture(scope="session")
def workspace(request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """Working directory of the run; its logs are kept when a test failed."""
    with stop_signals(), Workspace("fraud-filter-tests-") as directory:
        yield directory
        if request.session.testsfailed:
            directory.keep_logs()


@pytest.fixture(scope="session")
def broker(workspace: Workspace, java_home: Path, kafka_jars: list[Path]) -> Iterator[Broker]:
    """One broker for all tests; `broker.address` is its host:port."""
    with Broker(workspace, java_home=java_home, jars=kafka_jars) as running:
        yield running


@pytest.fixture(scope="session")
def admin(broker: Broker) -> Iterator[Any]:
    """A kafka-python admin client of the shared broker."""
    client = KafkaAdminClient(bootstrap_servers=broker.address)
    yield client
    client.close()


@pytest.fixture
def topics(admin: Any) -> Iterator[TopicMaker]:
    """`topics("payments", partitions=2, **config)` is `create_topic`; the topics are deleted after the test."""
    created: list[str] = []

    def create(name: str = "topic", *, partitions: int = 2, **config: str) -> str:
        created.append(create_topic(admin, name, partitions=partitions, **config))
        return created[-1]

    yield create
    if created:
        _delete(admin, created)


@retry(retry=retry_if_exception_type(NodeNotReadyError), stop=stop_after_delay(30), wait=wait_fixed(0.5), reraise=True)
def _delete(admin: Any, topics: list[str]) -> None:
    """Again where a broker that was restarted has not taken the client's connection yet."""
    admin.delete_topics(topics)


@pytest.fixture(scope="session")
def spark(java_home: Path) -> Iterator[Any]:  # noqa: ARG001 - Java must be there first
    """A local Spark session, set up as the filter sets up its own, with Kafka's connector."""
    from fraud_filter.modes import MODES
    from fraud_filter.spark import session

    running = session.start(load({"spark_master": "local[2]"}), MODES["micro-batch"])
    yield running
    running.stop()


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The number behind what a test draws; `--hypothesis-seed=N` repeats a run, in CI it is always the same."""
    given = request.config.getoption("--hypothesis-seed")
    chosen = int(given) if given is not None else 0 if os.environ.get("CI") else random.randrange(2**32)
    print(f"drawn with --hypothesis-seed={chosen}")  # noqa: T201
    return chosen


@pytest.fixture
def times(request: pytest.FixtureRequest) -> int:
    """How many times as much is drawn as in `make test`."""
    return int(request.config.getoption("--fuzz-times"))


@pytest.fixture
def new_stage(broker: Broker, topics: TopicMaker) -> StageMaker:
    """Makes a stage in a directory: topics of its own, set up as `kafka/topics.yml` says, and a checkpoint."""

    def make(directory: Path) -> Stage:
        shipped = {spec.name: spec.config for spec in load_topics(load())}
        names = (
            topics("payments", **shipped["payments"]),
            topics("flagged", **shipped["payments.flagged"]),
            topics("rejected", partitions=1, **shipped["payments.rejected"]),
        )
        directory.mkdir(exist_ok=True)
        return Stage(broker.address, *names, directory=directory)

    return make


@pytest.fixture
def stage(new_stage: StageMaker, tmp_path: Path) -> Stage:
    """Topics and a checkpoint of the test's own."""
    return new_stage(tmp_path)


@pytest.fixture
def outputs(stage: Stage) -> Iterator[Outputs]:
    """Writes to the stage's topics."""
    with Outputs(stage) as writer:
        yield writer
