"""A program run's own stack on this machine: Java and jars, a workspace, brokers, and the settings that name it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from fraud_filter.config import Settings
from fraud_filter.probe.probe import Probe
from lab.harness.broker import Broker, open_brokers
from lab.harness.drain import InputTopic
from lab.harness.java import Say, inspect
from lab.harness.machine import describe_versions, kafka_version
from lab.harness.processes import Child, stop_signals
from lab.harness.supplies import get_supplies
from lab.harness.workspace import Workspace


@dataclass(frozen=True)
class EmbeddedStack:
    """What runs, and what programs on it need. `settings`: the user's on this machine; `versions`: of all that runs."""

    settings: Settings
    workspace: Workspace
    java_home: Path
    brokers: Sequence[Broker]
    versions: Mapping[str, str]
    say: Say

    def with_settings(self, changes: Mapping[str, Any]) -> EmbeddedStack:
        """The same stack for programs with some settings changed."""
        return replace(self, settings=self.settings.model_copy(update=changes))


@dataclass(frozen=True)
class Scene:
    """The stack under load, and for how many `seconds` a filter works before something is done to it."""

    stack: EmbeddedStack
    probe: Probe
    topic: InputTopic
    generator: Child
    seconds: float


@contextmanager
def embedded_stack(
    name: str, settings: Settings, say: Say, *, partitions: int, brokers: int = 1, console: Console | None = None
) -> Iterator[EmbeddedStack]:
    """Starts Kafka; everything that was started is stopped at the end of the block, also when it is interrupted.

    Args:
        name: of what runs on it, for the workspace.
        partitions: of the largest topic that a filter reads.
        brokers: of the cluster, one or three.
        console: shows what is under way.

    Raises:
        FraudFilterError: the stack could not be started.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP.
    """
    with stop_signals(), Workspace(f"fraud-filter-{name}-") as workspace, ExitStack() as running:
        java_home, jars = get_supplies(say)
        java = inspect(java_home / "bin" / "java").full_version
        versions = describe_versions(kafka=kafka_version(jars), java=java)
        with console.status("Starting Kafka") if console else nullcontext():
            nodes = running.enter_context(open_brokers(workspace, brokers, java_home=java_home, jars=jars))
        own = on_this_machine(settings, ",".join(node.address for node in nodes), partitions)
        yield EmbeddedStack(own, workspace, java_home, nodes, versions, say)


def on_this_machine(settings: Settings, address: str, partitions: int) -> Settings:
    """The user's settings, with what an embedded run decides itself: its own broker, Spark here, free ports.

    Continuous and real-time mode hold a task slot a partition permanently; there are more.
    """
    return settings.model_copy(
        update={
            "kafka_bootstrap_servers": address,
            "kafka_security_protocol": "PLAINTEXT",
            "source": "kafka",
            "sink": "kafka",
            "checkpoint": "checkpoint",
            "spark_master": f"local[{max(8, partitions + 2)}]",
            "metrics_port": 0,
            "probe_port": 0,
        }
    )
