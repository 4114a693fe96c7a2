"""Reproduces what docs/upstream.md tells Spark's developers, in plain PySpark, and prints what it measures."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from statistics import quantiles
from typing import Any

import click
import pyspark
import requests
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from fraud_filter.spark.session import connector_jars, first_line, spark_jars
from lab.harness.java import require_java
from lab.harness.processes import Child, free_ports
from lab.harness.waiting import wait_until
from lab.harness.workspace import Workspace

HOST = "127.0.0.1"
MODES = {
    "micro-batch": {"processingTime": "1 second"},
    "continuous": {"continuous": "1 second"},
    "real-time": {"realTime": "5 seconds"},
    "real-time, long batches": {"realTime": "5 minutes"},
}
V1_CHECKPOINTS = "spark.sql.streaming.realTimeMode.dangerouslyAllowCheckpointV1.enabled"
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SHUFFLE_WAIT = "spark.shuffle.streaming.networkBufferMaxWaitTimeMs"
#: What micro-batch mode writes into an entry of the offset log, and continuous mode does not.
METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{}}'
#: The requests of Spark's Kafka clients, each a line of a file.
LOGGING = """
rootLogger = OFF, file
logger.clients = DEBUG
logger.clients.name = org.apache.kafka.clients.NetworkClient
appender.file.type = File
appender.file.name = file
appender.file.fileName = {}
appender.file.layout.type = PatternLayout
"""


class Stage:
    """A Spark session, and two topics of one partition for queries that copy the one to the other."""

    def __init__(self, address: str, directory: Path, conf: Mapping[str, str]) -> None:
        self.directory, self._name = directory, f"upstream-{uuid.uuid4()}"
        self._broker: dict[str, Any] = {"bootstrap.servers": address}
        jars = {"spark.jars": ",".join(map(str, connector_jars())), "spark.sql.shuffle.partitions": "1"}
        self.spark: Any = SparkSession.builder.master("local[8]").config(map={**jars, **conf}).getOrCreate()
        self.spark.sparkContext.setLogLevel("OFF")
        made = [NewTopic(f"{self._name}-{end}", 1, config={"message.timestamp.type": "LogAppendTime"}) for end in "io"]
        admin = AdminClient(self._broker)
        for creating in admin.create_topics(made).values():
            creating.result()
        self._copies = Consumer({**self._broker, "group.id": self._name})
        self._copies.assign([TopicPartition(f"{self._name}-o", 0, 0)])

    def start(self, checkpoint: str, mode: str, *, by_key: bool = False, wait_ms: str = "500") -> StreamingQuery:
        """The value of a copy is the time of its record's append, or of the last record of its key, if `by_key`."""
        while self._copies.consume(1000, timeout=1):
            pass  # what an earlier query has copied
        broker = {"kafka.bootstrap.servers": self._broker["bootstrap.servers"]}
        source = {"subscribe": f"{self._name}-i", "startingOffsets": "earliest", "kafka.fetch.max.wait.ms": wait_ms}
        rows = self.spark.readStream.format("kafka").options(**broker, **source).load()
        rows = rows.groupBy("key").agg({"timestamp": "max"}).toDF("key", "timestamp") if by_key else rows
        writer = rows.selectExpr("key", "CAST(unix_millis(timestamp) AS STRING) AS value").writeStream.format("kafka")
        writer = writer.options(**broker, topic=f"{self._name}-o", checkpointLocation=self.directory / checkpoint)
        writer = writer.outputMode("update" if "realTime" in MODES[mode] else "append")
        query: StreamingQuery = writer.trigger(**MODES[mode]).start()
        return query

    def send(self, query: StreamingQuery, count: int, gap_s: float) -> list[int]:
        """Sends so many records; the latency of each copy, append to append, in ms; of fewer if the query ends."""
        producer, found = Producer({**self._broker, "linger.ms": 0}), list[Any]()
        for number in range(count):
            producer.produce(f"{self._name}-i", key=f"k{number % 100}", value=b"")
            producer.flush()
            time.sleep(gap_s)
        while len(found) < count and query.isActive:
            found += self._copies.consume(count - len(found), timeout=1)
        return [copy.timestamp()[1] - int(copy.value()) for copy in found]

    def send_until(self, query: StreamingQuery, checkpoint: str, commits: int) -> list[int]:
        """Sends records until so many more batches or epochs are committed, or the query ends."""
        latencies, commits = list[int](), commits + self.commits(checkpoint)
        while self.commits(checkpoint) < commits and query.isActive:
            latencies += self.send(query, 5, 0.1)
        return latencies

    def commits(self, checkpoint: str) -> int:
        """How many batches or epochs are committed."""
        return len(list((self.directory / checkpoint / "commits").glob("[0-9]*")))


def say(title: str, latencies: list[int], **measured: object) -> None:
    """Prints a line."""
    if latencies:
        percentiles = quantiles(latencies, n=100, method="inclusive")
        measured = {"p50_ms": round(percentiles[49]), "p99_ms": round(percentiles[98]), **measured}
    click.echo(f"{title}: " + ", ".join(f"{name} {value}" for name, value in measured.items()))


def fetch_wait(address: str, directory: Path) -> None:
    """Continuous mode: after each fetch the reader asks for offsets, behind the next fetch, which the broker holds."""
    log, logging = directory / "log", directory / "log4j2.properties"
    logging.write_text(LOGGING.format(log))
    for wait_ms in ("500", "1"):  # 500 is Kafka's default
        stage = Stage(address, directory, {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging}"})
        query = stage.start(f"wait-{wait_ms}", "continuous", wait_ms=wait_ms)
        stage.send(query, 300, 0.01)
        for gap_ms, count in (100, 100), (1000, 20):
            before = log.stat().st_size
            latencies = stage.send(query, count, gap_ms / 1000)
            asked = log.read_text()[before:].count("Sending LIST_OFFSETS request") / count
            say(f"fetch.max.wait.ms {wait_ms}, a record each {gap_ms} ms", latencies, ListOffsets_per_record=asked)
        query.stop()


def progress(address: str, directory: Path) -> None:
    """Continuous mode has no progress, however many epochs are committed; micro-batch mode has."""
    for mode in ("micro-batch", "continuous"):
        stage = Stage(address, directory, {})
        query = stage.start(mode, mode)
        stage.send_until(query, mode, 5)
        query.stop()
        events, last = len(query.recentProgress), query.lastProgress
        say(mode, [], commits=stage.commits(mode), recentProgress=events, lastProgress="one" if last else last)


def leave(address: str, directory: Path) -> None:
    """Continuous mode writes no metadata into its offset log; which modes go on from there, without it and with it."""
    stage = Stage(
        address, directory, {V1_CHECKPOINTS: "true"}
    )  # or real-time mode refuses the other modes' commit logs
    query = stage.start("left", "continuous")
    stage.send_until(query, "left", 3)
    query.stop()
    written = {file.read_text().split("\n")[1] for file in (directory / "left/offsets").glob("[0-9]*")}
    say("continuous", [], metadata=written)
    for mode, metadata in [(mode, text) for mode in ("micro-batch", "real-time") for text in ("", METADATA)]:
        checkpoint = Path(shutil.copytree(directory / "left", directory / f"{mode}-{len(metadata)}"))
        for file in (checkpoint / "offsets").glob("[0-9]*"):
            version, _, offsets = file.read_text().split("\n")
            file.write_text("\n".join((version, metadata, offsets)))
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        before, query = stage.commits(checkpoint.name), stage.start(checkpoint.name, mode)
        stage.send_until(query, checkpoint.name, 2)
        error, after = query.exception(), stage.commits(checkpoint.name)
        query.stop()
        say(mode, [], metadata=metadata or "none", new_commits=after - before, error=error and first_line(error))


def shuffle_wait(address: str, directory: Path) -> None:
    """Real-time mode with state: how long a record waits for others before the shuffle sends it."""
    for name, conf in {"default": {}, "1": {SHUFFLE_WAIT: "1"}}.items():
        stage = Stage(address, directory, {STATE_STORE: ROCKS_DB, **conf})
        query = stage.start(name, "real-time, long batches", by_key=True)
        stage.send(query, 1500, 0.002)
        say(f"{SHUFFLE_WAIT} {name}", stage.send(query, 800, 0.01))
        query.stop()
        stage.spark.stop()


def latency_metrics(address: str, directory: Path) -> None:
    """Real-time mode: what records take, and what a progress event tells of it."""
    stage = Stage(address, directory, {})
    query = stage.start("checkpoint", "real-time")
    stage.send_until(query, "checkpoint", 2)
    latencies, last = stage.send_until(query, "checkpoint", 3), query.lastProgress
    event = json.loads(last.json) if last else {}
    query.stop()
    named = re.findall(r"\w*latenc\w*", str(event), re.IGNORECASE)
    say("real-time", latencies, fields=[*event], durationMs=event.get("durationMs"), named_latency=named or "none")


def rest(_: str, directory: Path) -> None:
    """A standalone master that has a secret takes a program from who has none, and a worker runs it."""
    port, rest_port = map(str, free_ports(2))
    secret = {"spark.authenticate": "true", "spark.authenticate.secret": "s", "spark.master.rest.port": rest_port}
    (directory / "conf").write_text("".join(f"{name} {value}\n" for name, value in secret.items()))
    run, deploy = str(spark_jars().parent / "bin/spark-class"), "org.apache.spark.deploy"
    common = ["--host", HOST, "--webui-port", "0", "--properties-file", f"{directory}/conf"]
    master = [run, f"{deploy}.master.Master", *common, "--port", port]
    worker = [run, f"{deploy}.worker.Worker", *common, "--memory", "2g", "--work-dir", str(directory)]
    program: Any = {
        "action": "CreateSubmissionRequest", "clientSparkVersion": pyspark.__version__, "environmentVariables": {},
        "appResource": next(spark_jars().glob("jackson-core-*.jar")).as_uri(),  # any jar
        "mainClass": f"{deploy}.SparkSubmit", "appArgs": ["--version"],
        "sparkProperties": {"spark.app.name": "anything"},
    }  # fmt: skip
    url = f"http://{HOST}:{rest_port}/v1/submissions"
    with (
        Child("the master", master, log=directory / "master.log") as first,
        Child("the worker", [*worker, f"spark://{HOST}:{port}"], log=directory / "worker.log") as second,
    ):
        wait_until(lambda: "REST server" in first.log.read_text(), 60, "there is no REST server", [first])
        made = requests.post(f"{url}/create", json=program, timeout=60).json()

        def state() -> str:
            return str(requests.get(f"{url}/status/{made['submissionId']}", timeout=60).json()["driverState"])

        wait_until(lambda: state() not in ("SUBMITTED", "RUNNING"), 60, "the program did not end", [first, second])
        say("submitted without credentials", [], success=made["success"], message=made["message"], state=state())


CASES = {case.__name__: case for case in (fetch_wait, progress, leave, rest, shuffle_wait, latency_metrics)}


@click.command()
@click.argument("case", type=click.Choice([*CASES]))
@click.option("--bootstrap-servers", default=f"{HOST}:9092", show_default=True)
def main(case: str, bootstrap_servers: str) -> None:
    """Reproduce a CASE of docs/upstream.md; all but `rest` need a broker (`fraud-filter lab broker`)."""
    os.environ["JAVA_HOME"], os.environ["SPARK_LOCAL_IP"] = str(require_java()), HOST
    with Workspace() as workspace:
        CASES[case](bootstrap_servers, workspace.path)


if __name__ == "__main__":
    main()
