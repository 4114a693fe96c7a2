"""A second broker beside an embedded one, so that a partition can lose its leader while others keep theirs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from lab.harness.broker import HOST, Broker
from lab.harness.processes import Child, free_ports
from lab.harness.workspace import Workspace

NODE = 2


def second_broker(first: Broker, workspace: Workspace, java_home: Path, jars: Sequence[Path]) -> Child:
    """Joins the cluster of `first`, which lies in `workspace`; not yet started."""
    made = (workspace.path / "server.properties").read_text(encoding="utf-8")
    (port,) = free_ports(1)
    own = {
        "process.roles": "broker",
        "node.id": NODE,
        "listeners": f"BROKER://{HOST}:{port}",
        "advertised.listeners": f"BROKER://{HOST}:{port}",
        "log.dirs": workspace.path / "second",
    }
    properties = workspace.path / "second.properties"  # of two equal names the last one counts
    properties.write_text("\n".join([made, *(f"{name}={value}" for name, value in own.items()), ""]), encoding="utf-8")
    java: list[str | Path] = [java_home / "bin" / "java", "-XX:+UseSerialGC", "-cp", ":".join(map(str, jars))]
    cluster = re.search(r"cluster\.id=(\S+)", (workspace.path / "kafka/meta.properties").read_text(encoding="utf-8"))
    assert cluster, f"no cluster at {first.address}"
    tool = ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster[1]}", "--config", str(properties)]
    with Child("formatting", [*java, *tool], log=workspace.logs / "second-format.log") as formatting:
        assert formatting.wait(60) == 0, formatting.tail()
    argv = [*java[:2], "-Xmx256m", *java[2:], "kafka.Kafka", properties]
    return Child("the second broker", argv, log=workspace.logs / "second.log")
