"""Kafka Streams as a child process: its class compiled, its options for latency, and how it is started."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError
from fraud_filter.home import HOME
from fraud_filter.java.jars import LOCK_NAME, resolve_jars
from fraud_filter.kafka.admin import find_input, open_admin
from fraud_filter.records import most_written_bytes
from lab.bench.launch import JAVA_OPTIONS, Launch, blocked_ids
from lab.harness.processes import Child
from lab.harness.supplies import KAFKA_LOCK

_HERE = Path(__file__).parent
_COMPILE_TIMEOUT_S = 120

#: Kafka Streams' options, named by itself. It is one member of its group that keeps its name, so that it has its
#: partitions at once when it comes back; another one would wait for the old one's session to end, 45 seconds.
_OPTIONS = {
    "commit.interval.ms": "5000",
    "main.consumer.auto.offset.reset": "earliest",  # each start has new topics
    "main.consumer.group.instance.id": "filter",
    "producer.linger.ms": "0",
}
#: Transactions, which a consumer sees when they are committed: 100 ms is Kafka Streams' default.
EXACTLY_ONCE = {"processing.guarantee": "exactly_once_v2", "commit.interval.ms": "100"}


def versions() -> dict[str, str]:
    """The version of Kafka Streams."""
    return {"kafka_streams": _streams_jars()[0].stem.rpartition("-")[2]}


def program(launch: Launch) -> Child:
    """The filter on Kafka Streams, not started yet."""
    stack, settings = launch.stack, launch.stack.settings
    folder = launch.folder / "streams"
    folder.mkdir(exist_ok=True)
    streams, compiler = _streams_jars()
    classpath = ":".join(map(str, (folder, streams, *resolve_jars(KAFKA_LOCK))))
    java = stack.java_home / "bin/java"
    _compile([java, "-jar", compiler, "-17", "-nowarn", "-cp", classpath, "-d", folder, _HERE / "Filter.java"])
    options = {
        **_OPTIONS,
        **launch.own,
        **_filter_options(settings, launch.plan),
        "application.id": launch.name,
        "bootstrap.servers": settings.kafka_bootstrap_servers,
        "num.stream.threads": str(len(launch.start)),
        "producer.max.request.size": str(most_written_bytes(settings)),
        "state.dir": str(folder),
    }
    file = folder / "streams.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in options.items()), encoding="utf-8")
    jvm = [*JAVA_OPTIONS.split(), f"-Dlog4j2.configurationFile={HOME / 'kafka/log4j2.properties'}"]
    argv: list[str | Path] = [java, *jvm, "-cp", classpath, "Filter", file]
    return Child("Kafka Streams", argv, log=stack.workspace.logs / f"{launch.name}.log")


def _streams_jars() -> tuple[Path, Path]:
    streams, compiler = sorted(resolve_jars(_HERE / LOCK_NAME), key=lambda jar: not jar.name.startswith("kafka"))
    return streams, compiler


def _filter_options(settings: Settings, plan: Path) -> Mapping[str, str]:
    return {
        **{f"filter.blocked.{column}": ",".join(ids) for column, ids in blocked_ids(settings).items()},
        "filter.topic.input": settings.input_topic,
        "filter.topic.flagged": settings.flagged_topic,
        "filter.topic.rejected": settings.rejected_topic,
        "filter.plan": str(plan),
        "filter.topic.id": find_input(open_admin(settings), settings).id,
    }


def _compile(argv: list[str | Path]) -> None:
    ran = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=_COMPILE_TIMEOUT_S)
    if ran.returncode:
        raise FraudFilterError(f"Kafka Streams' filter can't be compiled: {ran.stdout}{ran.stderr}")
