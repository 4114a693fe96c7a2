"""A real YARN on this machine: Hadoop's resource manager and node managers in one Java process, from a locked jar."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
from py4j.java_gateway import JavaGateway

from hdfs_cluster import Hdfs, jars

_JVM = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
_CONF = {
    # Containers are as large as their programs ask for, and no program of this machine's counts.
    "yarn.scheduler.minimum-allocation-mb": 128,
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 100,
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": 100,
    "yarn.scheduler.capacity.maximum-am-resource-percent": 1,
    # One that is gone is noticed soon.
    "yarn.nm.liveness-monitor.expiry-interval-ms": 10_000,
}
_EXECUTOR, _MASTER = "YarnCoarseGrainedExecutorBackend", "org.apache.spark.deploy.yarn.ExecutorLauncher"


class Yarn:
    """`with Yarn(...) as yarn` gives one for clients that read `yarn.conf_dir`."""

    def __init__(self, directory: Path, hdfs: Hdfs, java_home: Path, nodes: int = 1) -> None:
        """`directory` is its own."""
        self.conf_dir = directory
        self._hdfs = hdfs
        self._java = java_home / "bin/java"
        self._nodes = nodes

    def __enter__(self) -> Yarn:
        self._log = (self.conf_dir / "yarn.log").open("w")
        self._gateway: Any = JavaGateway.launch_gateway(
            classpath=":".join(jars()), javaopts=_JVM, java_path=str(self._java), cwd=str(self.conf_dir),
            die_on_exit=True, enable_auth=True, redirect_stdout=self._log, redirect_stderr=self._log,
        )  # fmt: skip
        java = self._gateway.jvm
        conf = java.org.apache.hadoop.yarn.conf.YarnConfiguration()
        for name, value in {**_CONF, "fs.defaultFS": self._hdfs.uri}.items():
            conf.set(name, str(value))
        self._cluster = java.org.apache.hadoop.yarn.server.MiniYARNCluster("yarn", self._nodes, 1, 1)
        try:
            self._cluster.init(conf)
            self._cluster.start()
            writer = java.java.io.FileWriter(str(self.conf_dir / "yarn-site.xml"))
            self._cluster.getConfig().writeXml(writer)
            writer.close()
            (self.conf_dir / "core-site.xml").write_text(
                f"<configuration><property><name>fs.defaultFS</name><value>{self._hdfs.uri}</value></property>"
                "</configuration>"
            )
            assert self._cluster.waitForNodeManagersToConnect(120_000)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.stop()
        self._end()

    def _end(self) -> None:
        self._gateway.shutdown()
        self._log.close()

    def stop_node(self, number: int) -> None:
        """Ends a node manager with its containers, as one that is lost."""
        self._cluster.getNodeManager(number).stop()

    def node_of(self, container: psutil.Process) -> int:
        """The number of the node manager that has started it: its working directory is one of that node's."""
        return int(container.cwd().partition("-localDir-nm-")[2].partition("_")[0])

    @property
    def executors(self) -> list[psutil.Process]:
        """Java of the executors, the oldest first."""
        return self._containers(_EXECUTOR)

    @property
    def application_masters(self) -> list[psutil.Process]:
        """Java of the applications' masters."""
        return self._containers(_MASTER)

    def _containers(self, main: str) -> list[psutil.Process]:
        """Of this cluster alone: their command lines name its directory."""
        found = []
        for process in psutil.process_iter(["name", "cmdline", "create_time"]):
            words = process.info["cmdline"] or []
            mine = any(str(self.conf_dir) in word for word in words)
            if process.info["name"] == "java" and mine and any(main in word for word in words):
                found.append(process)
        return sorted(found, key=lambda process: process.info["create_time"])
