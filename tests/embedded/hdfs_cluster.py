"""A real HDFS on this machine: Hadoop's name node and data node in one process, from a locked jar."""

from __future__ import annotations

import json
from pathlib import Path

import pyspark

from fraud_filter.java.jars import resolve_jars
from lab.harness.processes import Child
from running import Server

_LOCK = Path(__file__).parent / "hadoop/jgo.lock.toml"
_MAIN = "org.apache.hadoop.test.MiniDFSClusterManager"
_JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def jars() -> list[str]:
    """Of Hadoop's small clusters, and of the client that the pyspark package ships."""
    return [*map(str, resolve_jars(_LOCK)), f"{Path(pyspark.__file__).parent}/jars/*"]


class Hdfs(Server):
    """`with Hdfs(...) as hdfs` gives one that answers, at `hdfs.uri`."""

    def __init__(self, directory: Path, java_home: Path) -> None:
        """`directory` is its own."""
        self._details = directory / "details.json"
        options = {
            "hdfs.minidfs.basedir": directory / "data",
            "dfs.replication": 1,
            "dfs.permissions.enabled": "false",
        }
        argv = [
            *(java_home / "bin/java", *_JVM, f"-Dtest.build.data={directory}", "-cp", ":".join(jars()), _MAIN),
            *("-format", "-datanodes", "1", "-writeDetails", self._details),
            *(word for name, value in options.items() for word in ("-D", f"{name}={value}")),
        ]
        super().__init__(Child("HDFS", list(map(str, argv)), log=directory / "hdfs.log"))

    @property
    def uri(self) -> str:
        """Such as hdfs://127.0.0.1:8020."""
        return f"hdfs://127.0.0.1:{json.loads(self._details.read_text())['namenode_port']}"

    def is_up(self) -> bool:
        """The details are written when both nodes are up."""
        return self._details.exists() and self._details.read_text().endswith("}")
