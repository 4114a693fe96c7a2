"""A worker of a real Spark standalone cluster leaves and comes back: the filter waits for it, aloud."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pyspark
import pytest

from faults import events, java_of, metrics, said_while_stopping
from filter_under_load import Run
from fraud_filter.home import HOME
from fraud_filter.java import class_archive
from lab.harness.processes import Child
from running import Stage, free_ports, wait_until

pytestmark = pytest.mark.timed

LOCAL = {
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_NO_DAEMONIZE": "1",
    # It would take programs of everybody on this machine.
    "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
}
CONF = {
    "spark.cores.max": "2",
    "spark.executor.memory": "512m",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "15s",  # instead of 30: a start without a worker waits so long
}


LOG4J = HOME / "spark/conf/log4j2.properties"


@pytest.fixture(autouse=True)
def quick_starts(java_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - it makes the archive
    """The cluster's own programs use the class archive as the filter's do."""
    if archive := class_archive.find():
        monkeypatch.setitem(LOCAL, "SPARK_DAEMON_JAVA_OPTS", class_archive.java_options(archive))
        monkeypatch.setitem(CONF, "spark.executor.extraJavaOptions", class_archive.java_options(archive))


class Cluster:
    """A master, and a worker of two cores that can leave and come back."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        (self._port,) = free_ports(1)
        self.url = f"spark://127.0.0.1:{self._port}"
        self.master = self._child("master.Master", "--port", str(self._port), "--webui-port", "0")
        self.worker = self.new_worker()

    def new_worker(self) -> Child:
        work = ("--cores", "2", "--memory", "1g", "--webui-port", "0", "--work-dir", str(self._directory / "work"))
        self.worker = self._child("worker.Worker", *work, self.url)
        return self.worker

    def _child(self, name: str, *words: str) -> Child:
        program = Path(pyspark.__file__).parent / "bin/spark-class"
        argv = [program, f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *words]
        return Child(name, [str(word) for word in argv], log=self._directory / f"{name}.log", env=LOCAL)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    (tmp_path / "work").mkdir()
    made = Cluster(tmp_path)
    with ExitStack() as stack:
        stack.enter_context(made.master)
        stack.callback(lambda: made.worker.stop())
        wait_until(lambda: "I have been elected leader" in "\n".join(made.master.tail(50)), "a master", made.master)
        made.worker.start()
        yield made


def test_a_worker_that_leaves_is_waited_for_and_nothing_is_lost(stage: Stage, cluster: Cluster) -> None:
    with Run(stage, "continuous", spark_master=cluster.url, spark_conf=json.dumps(CONF)) as run:
        run.await_fresh("the start on a cluster")
        cluster.worker.stop(1)
        wait_until(lambda: bool(events(run.program, "waiting_for_slots")), "it waits for task slots", run.program)
        assert "needed=2 granted=0" in events(run.program, "waiting_for_slots")[0]
        now = metrics(run.port)
        assert now["fraud_filter_state/waiting-for-slots"] == 1
        assert (now["fraud_filter_task_slots_needed"], now["fraud_filter_task_slots_granted"]) == (2, 0)
        assert (now["fraud_filter_up"], now["fraud_filter_healthy"]) == (0, 0)
        cluster.new_worker().start()
        run.await_fresh("the worker came back")
        assert metrics(run.port)["fraud_filter_healthy"] == 1
        run.end()


def test_a_killed_executor_costs_the_query_a_restart_and_not_java(stage: Stage, cluster: Cluster) -> None:
    with Run(stage, "continuous", spark_master=cluster.url, spark_conf=json.dumps(CONF)) as run:
        run.await_fresh("the start on a cluster")
        java = java_of(run.program).pid
        executor_of(cluster.worker).kill()
        wait_until(lambda: run.restarts("slots-back") == 1, "the executor is replaced", run.program)
        run.await_fresh("kill -9 of an executor")
        assert java_of(run.program).pid == java
        assert metrics(run.port)["fraud_filter_healthy"] == 1
        run.end()


def executor_of(worker: Child) -> psutil.Process:
    """The executor's process below a worker."""
    for child in psutil.Process(worker.pid).children(recursive=True):
        with suppress(psutil.Error):  # one that has just ended
            if "CoarseGrainedExecutorBackend" in " ".join(child.cmdline()):
                return child
    raise AssertionError("the worker has no executor")


@pytest.mark.parametrize("mode", ["continuous", "real-time"])
def test_a_stop_is_silent_on_executors_too(
    stage: Stage, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """They log as in the Compose stack."""
    options = f"{CONF.get('spark.executor.extraJavaOptions', '')} -Dlog4j2.configurationFile={LOG4J.as_uri()}"
    monkeypatch.setitem(CONF, "spark.executor.extraJavaOptions", options)
    with Run(stage, mode, spark_master=cluster.url, spark_conf=json.dumps(CONF)) as run:
        run.await_fresh("the start on a cluster")
        (log,) = tmp_path.glob("work/app-*/0/stderr")
        before = len(log.read_text())
        assert run.program.stop(30) == 0, run.program.tail()
        assert said_while_stopping(run.program) == []
        assert [line for line in log.read_text()[before:].splitlines() if "level=INFO" not in line] == []
