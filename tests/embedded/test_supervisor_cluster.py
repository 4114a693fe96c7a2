"""A worker of a real Spark standalone cluster leaves and comes back: the filter waits for it, aloud."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from faults import events, java_of, metrics, said_while_stopping
from filter_under_load import Run, require_features, rules_with_features
from fraud_filter.home import HOME
from fraud_filter.java import class_archive
from lab.harness.processes import Child
from running import START_S, Stage, refusal, wait_until
from standalone_cluster import DAEMONS, Cluster

CONF = {
    "spark.executor.memory": "512m",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "15s",  # instead of 30: a start without a worker waits so long
}


LOG4J = HOME / "spark/conf/log4j2.properties"


@pytest.fixture(autouse=True)
def quick_starts(java_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - it makes the archive
    """The cluster's own programs use the class archive as the filter's do."""
    if archive := class_archive.find():
        monkeypatch.setitem(DAEMONS, "SPARK_DAEMON_JAVA_OPTS", class_archive.java_options(archive))
        monkeypatch.setitem(CONF, "spark.executor.extraJavaOptions", class_archive.java_options(archive))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    (tmp_path / "work").mkdir()
    made = Cluster(tmp_path)
    with made:
        made.worker.start()
        yield made


@pytest.fixture
def run(cluster: Cluster, stage: Stage) -> Callable[..., Run]:
    """A filter under load on the cluster, whose executors log as in the Compose stack."""
    options = f"{CONF.get('spark.executor.extraJavaOptions', '')} -Dlog4j2.configurationFile={LOG4J.as_uri()}"

    def begin(mode: str, cores: int, conf: Mapping[str, str] | None = None, **settings: str) -> Run:
        conf = CONF | {"spark.executor.extraJavaOptions": options} | dict(conf or {})
        if cores:  # else the filter asks for what its query needs
            conf["spark.cores.max"] = str(cores)
        return Run(stage, mode, spark_master=cluster.url, spark_conf=json.dumps(conf), **settings)

    return begin


def stop_in_silence(run: Run, cluster: Cluster, directory: Path) -> None:
    """Under load; executors say nothing of it either, up to their own end."""
    logs = {log: len(log.read_text()) for log in directory.glob("work/app-*/*/stderr")}
    assert logs
    assert run.program.stop(30) == 0, run.program.tail()
    assert said_while_stopping(run.program) == []
    wait_until(lambda: not executors_of(cluster.worker), "the executors end", cluster.worker)
    said = [line for log, before in logs.items() for line in log.read_text()[before:].splitlines()]
    assert [line for line in said if "level=INFO" not in line] == []


@pytest.mark.timeout(900)
def test_stops_are_silent_and_executors_and_workers_that_go_are_waited_for(
    run: Callable[..., Run], cluster: Cluster, tmp_path: Path
) -> None:
    """On one checkpoint: real-time mode is stopped, and continuous mode goes on, for what happens to it."""
    # Without an executor nothing fails: a stall ends the query.
    with run("real-time", 2, stall_timeout_s="30") as filtering:
        filtering.await_fresh("the start on a cluster", START_S)
        # Spark tries the tasks again on the new executor before the query's restart.
        require_killed_executor_is_replaced(filtering, cluster)
        stop_in_silence(filtering, cluster, tmp_path)
        filtering.program._env["FRAUD_MODE"] = "continuous"
        filtering.program.start()
        filtering.await_fresh("another mode's start", START_S)
        require_killed_executor_is_replaced(filtering, cluster)
        require_worker_is_waited_for(filtering, cluster)
        assert filtering.end().duplicated == 0


def require_killed_executor_is_replaced(run: Run, cluster: Cluster) -> None:
    """It costs the query a restart and not Java."""
    java = java_of(run.program).pid
    executor_of(cluster.worker).kill()
    wait_until(lambda: run.restarts("slots-back") == 1, "the executor is replaced", run.program)
    run.await_fresh("kill -9 of an executor", START_S)
    assert java_of(run.program).pid == java
    await_healthy(run)


def require_worker_is_waited_for(run: Run, cluster: Cluster) -> None:
    waited = len(events(run.program, "waiting_for_slots"))
    cluster.worker.stop(1)
    waits = lambda: len(events(run.program, "waiting_for_slots")) > waited  # noqa: E731
    wait_until(waits, "it waits for task slots", run.program, START_S)
    assert "needed=2 granted=0" in events(run.program, "waiting_for_slots")[-1]
    names = ("state/waiting-for-slots", "task_slots_needed", "task_slots_granted", "up", "healthy")
    told = lambda: [metrics(run.port)[f"fraud_filter_{name}"] for name in names] == [1, 2, 0, 0, 0]  # noqa: E731
    wait_until(told, "its metrics say so", run.program)
    cluster.new_worker().start()
    run.await_fresh("the worker came back", START_S)
    await_healthy(run)


@pytest.mark.exhaustive  # a task that Spark tries again ends the query in test_written
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("cores", "duration", "losses"),
    [
        pytest.param(2, "5 minutes", 2, id="tried-at-once"),  # both times at the same offsets
        pytest.param(1, "5 seconds", 1, id="tried-when-the-batch-is-over"),  # it reads nothing then, and ends well
    ],
)
def test_query_that_dies_of_a_lost_executor_keeps_java_and_decides_once(
    run: Callable[..., Run], cluster: Cluster, cores: int, duration: str, losses: int
) -> None:
    """Spark tries the lost task on the other executor, before a new one is there."""
    conf = {"spark.executor.cores": str(cores), "spark.standalone.executorRemoveDelayOnDisconnection": "1s"}
    with run("real-time", 2 * cores, conf, real_time_duration=duration) as filtering:
        filtering.await_fresh("the start on a cluster", START_S)
        java = java_of(filtering.program).pid
        for _ in range(losses):
            lose_executor(filtering, cluster.worker)
            filtering.await_fresh("kill -9 of an executor", START_S)
        assert java_of(filtering.program).pid == java
        assert events(filtering.program, "searching_record") == []
        assert filtering.end().duplicated == 0


@pytest.mark.timeout(600)
def test_executors_that_are_lost_again_and_again_end_the_program(run: Callable[..., Run], cluster: Cluster) -> None:
    """As a record does that kills the executor which reads it: it is searched for then, as after any other end."""
    with run("real-time", 2, max_restarts="1") as filtering:
        for lives in (1, 2, 3, 4):
            starts = lambda: len(events(filtering.program, "started")) == lives  # noqa: B023, E731
            wait_until(starts, "the query runs", filtering.program, START_S)
            (name,) = executors_of(cluster.worker)
            name.kill()
        assert "gave up after 1 restarts in a row without progress" in refusal(filtering.program, 4)
        told = events(filtering.program, "restarting")
        assert [" reason=slots-back " in line for line in told] == [True] * 3, told


def lose_executor(run: Run, worker: Child) -> None:
    """Kills one that has a task; the worker starts no other one before the query has ended."""
    before, prefix = run.restarts("slots-back"), "fraud_filter_executor_active_tasks/"

    def tasks() -> dict[str, float]:
        found = metrics(run.port, "executor").items()
        return {name.removeprefix(prefix): count for name, count in found if name.startswith(prefix)}

    wait_until(lambda: len(tasks()) == sum(tasks().values()) == 2, "two executors with two tasks", run.program)
    (name, _) = max(tasks().items(), key=lambda item: item[1])
    (busy,) = [each for each in executors_of(worker) if f"--executor-id {name} " in " ".join(each.cmdline())]
    psutil.Process(worker.pid).suspend()
    busy.kill()
    wait_until(lambda: run.restarts("slots-back") > before, "the query ends", run.program)
    psutil.Process(worker.pid).resume()


def await_healthy(run: Run) -> None:
    """It is judged at the next look."""
    wait_until(lambda: metrics(run.port)["fraud_filter_healthy"] == 1, "it is healthy", run.program)


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_features_are_right_after_an_executor_is_killed(
    run: Callable[..., Run], stage: Stage, cluster: Cluster
) -> None:
    """Their state dies with the executor, and is read again from the checkpoint."""
    own = {"rules": str(rules_with_features(stage)), "real_time_duration": "5 seconds"}
    with run("real-time", 0, **own) as filtering:
        filtering.await_fresh("the start on a cluster", START_S)
        found = metrics(filtering.port)
        assert (found["fraud_filter_task_slots_needed"], found["fraud_filter_task_slots_granted"]) == (4, 4)
        filtering.await_commit()
        executor_of(cluster.worker).kill()
        wait_until(lambda: bool(events(filtering.program, "restarting")), "a restart", filtering.program)
        filtering.await_fresh("kill -9 of an executor", START_S)
        require_features(filtering.end())


@pytest.mark.timeout(600)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a program another view of the file system")
def test_state_that_executors_keep_on_another_disk_is_refused(
    run: Callable[..., Run], stage: Stage, cluster: Cluster
) -> None:
    checkpoint = stage.directory / "checkpoint"
    checkpoint.mkdir(parents=True, exist_ok=True)
    cluster.worker.stop(1)
    elsewhere = f'mount -t tmpfs none {checkpoint} && exec "$@"'
    cluster.new_worker("unshare", "--mount", "--propagation", "private", "sh", "-c", elsewhere, "sh").start()
    with run("real-time", 0, rules=str(rules_with_features(stage))) as filtering:
        said = refusal(filtering.program, 2)
        assert "is not shared by the executors of" in said
        assert "FRAUD_CHECKPOINT" in said
        assert "the driver does not find 4 of 4 files" in said
    assert [path.name for path in checkpoint.iterdir() if path.name.startswith(".executors")] == []


def executors_of(worker: Child) -> list[psutil.Process]:
    """The executors' processes below a worker."""
    found = []
    for child in psutil.Process(worker.pid).children(recursive=True):
        with suppress(psutil.Error):  # one that has just ended
            if "CoarseGrainedExecutorBackend" in " ".join(child.cmdline()):
                found.append(child)
    return found


def executor_of(worker: Child) -> psutil.Process:
    found = executors_of(worker)
    assert found, "the worker has no executor"
    return found[0]
