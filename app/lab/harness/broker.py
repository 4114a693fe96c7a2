"""A real Kafka broker on this machine: KRaft broker and controller in one process, from the locked jars."""

from __future__ import annotations

import socket
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.home import HOME
from lab.harness.processes import Child, free_ports
from lab.harness.waiting import TooLateError, wait_until
from lab.harness.workspace import Workspace

HOST = "127.0.0.1"

_PROPERTIES = HOME / "kafka/server.properties"
_LOGGING = HOME / "kafka/log4j2.properties"
#: Measured at 5,000 payments/s: 55 MB of heap, 230 MB resident. G1 with a short pause goal is Kafka's own choice.
_JVM = ("-Xms128m", "-Xmx512m", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:+ExitOnOutOfMemoryError")
_FORMAT_TIMEOUT_S = 60
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
        java_options: Sequence[str] = (),
    ) -> None:
        """`port` 0 takes a free one; data are kept in `data_dir`, or for the workspace's life only.

        `java_options` count more than those in JDK_JAVA_OPTIONS.
        """
        self._workspace = workspace
        self._java = java_home / "bin" / "java"
        self._classpath = ":".join(map(str, jars))
        self._data_dir = data_dir
        self._java_options = java_options
        self._port = port
        self._child: Child | None = None

    @property
    def address(self) -> str:
        """host:port for clients."""
        return f"{HOST}:{self._port}"

    @property
    def _data(self) -> Path:
        return self._data_dir or self._workspace.path / "kafka"

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
            UsageError: the wanted port is in use, or the data directory can't be written.
            FraudFilterError: the broker ended, or did not answer within `timeout_s` seconds.
        """
        if self._child and self._child.is_alive:
            return self
        if self._port and not _is_free(self._port):
            raise UsageError(f"port {self._port} is in use: stop what listens there or choose another --port")
        spare, controller = free_ports(2)
        self._port = self._port or spare  # clients know it from now on
        properties = self._configure(controller_port=controller)
        self._format(properties)
        jvm = [*_JVM, *self._java_options, f"-Dlog4j2.configurationFile={_LOGGING}", "-cp", self._classpath]
        argv: list[str | Path] = [self._java, *jvm, "kafka.Kafka", properties]
        self._child = Child("the Kafka broker", argv, log=self._workspace.logs / "kafka.log")
        try:
            self._child.start()
            self._wait(self._child, timeout_s)
        except BaseException:
            self._child.stop()
            raise
        return self

    def stop(self, timeout_s: float = 20) -> None:
        """Stops the broker: asked first, killed after `timeout_s` seconds."""
        if self._child:
            self._child.stop(timeout_s)

    def _configure(self, controller_port: int) -> Path:
        broker, controller = f"BROKER://{self.address}", f"CONTROLLER://{HOST}:{controller_port}"
        overrides = {
            "controller.quorum.voters": f"1@{HOST}:{controller_port}",
            "listeners": f"{broker},{controller}",
            "advertised.listeners": broker,
            "log.dirs": self._data,
        }
        lines = [f"{name}={value}" for name, value in overrides.items()]
        properties = self._workspace.path / "server.properties"  # of two equal names the last one counts
        properties.write_text("\n".join([_PROPERTIES.read_text(encoding="utf-8"), *lines, ""]), encoding="utf-8")
        return properties

    def _format(self, properties: Path) -> None:
        """Prepares an empty data directory; one that holds data stays as it is."""
        try:
            self._data.mkdir(parents=True, exist_ok=True)
            if (self._data / "meta.properties").exists():
                return
        except OSError as error:
            raise UsageError(f"data directory {self._data} can't be used: {error}; choose another --data-dir") from None
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        jvm = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=warn", "-cp", self._classpath]
        tool: list[str | Path] = [
            "kafka.tools.StorageTool",
            "format",
            f"--cluster-id={cluster}",
            "--config",
            properties,
        ]
        argv = [self._java, *jvm, *tool]
        log = self._workspace.logs / "kafka-format.log"
        with Child("formatting Kafka's storage", argv, log=log) as child:
            if child.wait(_FORMAT_TIMEOUT_S) != 0:
                child.raise_if_dead()
                raise FraudFilterError(f"formatting Kafka's storage took longer than {_FORMAT_TIMEOUT_S} s")

    def _wait(self, child: Child, timeout_s: float) -> None:
        admin = AdminClient(_CLIENT | {"bootstrap.servers": self.address})
        late = f"the Kafka broker at {self.address} did not answer"
        try:
            wait_until(lambda: _answers(admin), timeout_s, late, [child])
        except TooLateError as error:
            lines = "\n".join(f"  {line}" for line in child.tail(10))
            raise FraudFilterError(f"{error}; its last lines:\n{lines}") from None

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _answers(admin: AdminClient) -> bool:
    """Whether the broker says that it is part of its cluster."""
    try:
        return bool(admin.list_topics(timeout=0.5).brokers)
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
