"""Real Kafka brokers on this machine, each a KRaft broker and controller in one process, from the locked jars."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.home import HOME
from lab.harness.processes import Child, free_ports
from lab.harness.waiting import wait_until
from lab.harness.workspace import Workspace

HOST = "127.0.0.1"

_PROPERTIES = HOME / "kafka/server.properties"
#: What differs where there are three of them.
_REPLICATED = HOME / "kafka/replicated.properties"
_LOGGING = HOME / "kafka/log4j2.properties"
#: Measured at 5,000 payments/s: 55 MB of heap, 230 MB resident. G1 with a short pause goal is Kafka's own choice.
#: It runs for long and answers many requests a second: both of Java's compilers, whatever JDK_JAVA_OPTIONS says.
_JVM = (
    *("-Xms128m", "-Xmx512m", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:+ExitOnOutOfMemoryError"),
    "-XX:TieredStopAtLevel=4",
)
#: Of every cluster: a node refuses data of another one.
_CLUSTER = "ZnJhdWQtZmlsdGVyLWxhYg"
#: While we wait refused connections are no news, and worth another try soon.
_CLIENT: dict[str, str | int | float | bool] = {"log_level": 2, "reconnect.backoff.max.ms": 200}


class Broker:
    """A broker; `with Broker(...) as broker` gives one that answers, at `broker.address`.

    It can be stopped and started again: address and data stay.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        java_home: Path,
        jars: Sequence[Path],
        port: int = 0,
        data_dir: Path | None = None,
        node: int = 1,
        controllers: Mapping[int, int] | None = None,
    ) -> None:
        """`port` 0 takes a free one; data are kept in `data_dir`, or for the workspace's life only.

        `node` is its number in the cluster, and `controllers` are the controllers' ports by node; without them it is
        alone, and takes a free one.
        """
        self._workspace = workspace
        self._java = java_home / "bin" / "java"
        self._classpath = ":".join(map(str, jars))
        self._data_dir = data_dir
        self._port = port
        self.node = node
        self._controllers = controllers
        self._name = "kafka" if node == 1 else f"kafka-{node}"
        self._child: Child | None = None
        #: Whether it was started, and not stopped by us since.
        self.is_wanted = False

    @property
    def address(self) -> str:
        """host:port for clients."""
        return f"{HOST}:{self._port}"

    @property
    def _data(self) -> Path:
        return self._data_dir or self._workspace.path / self._name

    @property
    def child(self) -> Child:
        """The broker's process.

        Raises:
            FraudFilterError: the broker was never started.
        """
        if self._child is None:
            raise FraudFilterError("the Kafka broker was not started")
        return self._child

    def start(self, timeout_s: float = 60) -> Broker:
        """Starts the broker and returns when it answers; on failure nothing is left running.

        Raises:
            FraudFilterError: the broker ended, or did not answer within `timeout_s` seconds.
        """
        try:
            child = self.launch()
            admin = AdminClient(_CLIENT | {"bootstrap.servers": self.address})
            wait_until(lambda: _has_joined(admin, self.node), timeout_s, f"no Kafka broker at {self.address}", [child])
        except BaseException:
            self.stop()
            raise
        return self

    def launch(self) -> Child:
        """Starts the broker's process, unless it runs: of several, each waits for others before it answers.

        Raises:
            UsageError: the wanted port is in use, or the data directory can't be written.
        """
        if self._child and self._child.is_alive:
            return self._child
        if self._port and not _is_free(self._port):
            raise UsageError(f"port {self._port} is in use: stop what listens there or choose another --port")
        spare, controller = free_ports(2)
        self._port = self._port or spare  # clients know it from now on
        properties = self._configure((self._controllers or {}).get(self.node, controller))
        self._format(properties)
        jvm = [*_JVM, f"-Dlog4j2.configurationFile={_LOGGING}", "-cp", self._classpath]
        argv: list[str | Path] = [self._java, *jvm, "kafka.Kafka", properties]
        self._child = Child("the Kafka broker", argv, log=self._workspace.logs / f"{self._name}.log")
        self.is_wanted = True
        return self._child.start()

    def stop(self, timeout_s: float = 20) -> None:
        """Stops the broker: asked first, killed after `timeout_s` seconds."""
        self.is_wanted = False
        if self._child:
            self._child.stop(timeout_s)

    def _configure(self, controller_port: int) -> Path:
        broker, controller = f"BROKER://{self.address}", f"CONTROLLER://{HOST}:{controller_port}"
        voters = self._controllers or {self.node: controller_port}
        overrides = {
            "node.id": self.node,
            "broker.rack": f"rack-{self.node}",
            "controller.quorum.voters": ",".join(f"{node}@{HOST}:{port}" for node, port in voters.items()),
            "listeners": f"{broker},{controller}",
            "advertised.listeners": broker,
            "log.dirs": self._data,
        }
        lines = [f"{name}={value}" for name, value in overrides.items()]
        properties = self._workspace.path / f"{self._name}.properties"  # of two equal names the last one counts
        shipped = [_PROPERTIES, _REPLICATED] if len(voters) > 1 else [_PROPERTIES]
        text = "\n".join([*(file.read_text(encoding="utf-8") for file in shipped), *lines, ""])
        properties.write_text(text, encoding="utf-8")
        return properties

    def _format(self, properties: Path) -> None:
        """Prepares an empty data directory; one that holds data stays as it is."""
        try:
            self._data.mkdir(parents=True, exist_ok=True)
            if (self._data / "meta.properties").exists():
                return
        except OSError as error:
            raise UsageError(f"data directory {self._data} can't be used: {error}; choose another --data-dir") from None
        jvm = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=warn", "-cp", self._classpath]
        tool: list[str | Path] = ["kafka.tools.StorageTool", "format", f"--cluster-id={_CLUSTER}"]
        argv = [self._java, *jvm, *tool, "--config", properties]
        log = self._workspace.logs / f"{self._name}-format.log"
        with Child("formatting Kafka's storage", argv, log=log) as child:
            if child.wait():
                child.raise_if_dead()

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextmanager
def open_brokers(workspace: Workspace, count: int, *, java_home: Path, jars: Sequence[Path]) -> Iterator[list[Broker]]:
    """`count` brokers of one cluster, each in another rack; yields them when they answer, and stops them at the end."""
    ports = dict(enumerate(free_ports(count), 1))
    nodes = [Broker(workspace, java_home=java_home, jars=jars, node=node, controllers=ports) for node in ports]
    with ExitStack() as running:
        for broker in nodes:
            running.callback(broker.stop)
            broker.launch()
        yield [broker.start() for broker in nodes]


def _has_joined(admin: AdminClient, node: int) -> bool:
    """Whether the broker says that it is part of its cluster."""
    try:
        return node in admin.list_topics(timeout=0.5).brokers
    except KafkaException:
        return False


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
