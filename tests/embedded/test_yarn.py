"""The filter on a real YARN, its driver here and its executors in containers, with the checkpoint in HDFS."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyspark
import pytest

from faults import events, metrics
from filter_under_load import Run, settings_of, standby_of
from fraud_filter.audit.run import audit
from hdfs_cluster import Hdfs
from lab.harness.processes import kill_family
from running import Stage, wait_until
from yarn_cluster import Yarn

_START_S = 240
CONF = {
    # What every node has need not be sent to it.
    "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent}/jars/*",
    "spark.executor.memory": "512m",
    "spark.executor.memoryOverhead": "128m",
    "spark.yarn.am.memory": "384m",
    "spark.yarn.am.memoryOverhead": "128m",
    # On a busy machine containers take longer to start than Spark waits for them.
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    "spark.driver.host": "127.0.0.1",
}


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> Iterator[Hdfs]:
    with Hdfs(tmp_path_factory.mktemp("hdfs"), java_home) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory, hdfs: Hdfs, java_home: Path) -> Iterator[Yarn]:
    with Yarn(tmp_path_factory.mktemp("yarn"), hdfs, java_home) as cluster:
        yield cluster


@pytest.fixture
def run(yarn: Yarn, hdfs: Hdfs, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """A filter under load on the cluster."""
    monkeypatch.setenv("HADOOP_CONF_DIR", str(yarn.conf_dir))
    own = {
        "checkpoint": f"{hdfs.uri}/{stage.input}",
        "checkpoint_lock_timeout_s": "6",
        "real_time_duration": "5 seconds",
    }

    def begin(mode: str, conf: Mapping[str, str] | None = None) -> Run:
        return Run(stage, mode, spark_master="yarn", spark_conf=json.dumps(CONF | dict(conf or {})), **own)

    return begin


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("mode", "kills"),
    [("real-time", 0), *(pytest.param(mode, 1, marks=pytest.mark.exhaustive) for mode in ("real-time", "continuous"))],
)
def test_long_tasks_are_spread_over_containers_and_one_that_is_killed_is_replaced(
    run: Callable[..., Run], yarn: Yarn, mode: str, kills: int
) -> None:
    """Executors of another cluster are killed in `test_supervisor_cluster`."""
    with run(mode) as filtering:
        filtering.await_fresh("the start on YARN", _START_S)
        # Each partition has a task as long as a batch, and each of the two executors one of them.
        wait_until(lambda: active_tasks(filtering) == [1, 1], "a task on each executor", filtering.program)
        found = metrics(filtering.port)
        assert (found["fraud_filter_task_slots_needed"], found["fraud_filter_task_slots_granted"]) == (2, 2)
        filtering.await_commit()
        (master,) = yarn.application_masters
        for executor in yarn.executors[:kills]:
            executor.kill()
            wait_until(lambda: bool(events(filtering.program, "restarting")), "a restart", filtering.program)
            filtering.await_fresh("kill -9 of an executor", _START_S)
        assert [each.pid for each in yarn.application_masters] == [master.pid]
        assert filtering.end().duplicated == 0


@pytest.mark.exhaustive  # the gate has one case on YARN
@pytest.mark.timeout(600)
def test_an_application_that_yarn_ends_is_followed_by_another(run: Callable[..., Run], yarn: Yarn) -> None:
    """As YARN does when an application's master is lost too often, or too many of its executors."""
    with run("real-time", {"spark.yarn.maxAppAttempts": "1"}) as filtering:
        filtering.await_fresh("the start on YARN", _START_S)
        (master,) = yarn.application_masters
        master.kill()
        wait_until(lambda: bool(events(filtering.program, "restarting")), "a restart", filtering.program)
        filtering.await_fresh("the end of the application", _START_S)
        assert [each.pid for each in yarn.application_masters] != [master.pid]
        assert filtering.end().duplicated == 0


@pytest.mark.exhaustive  # as above
@pytest.mark.timeout(600)
def test_a_standby_with_executors_of_its_own_takes_over_when_the_driver_is_killed(run: Callable[..., Run]) -> None:
    with run("real-time") as filtering:
        filtering.await_fresh("the start on YARN", _START_S)
        given = {name: value for name, value in settings_of(filtering).items() if name != "standby_warm_up_s"}
        with standby_of(filtering, checkpoint=filtering.program._env["FRAUD_CHECKPOINT"], **given) as (standby, _):
            kill_family(filtering.program)
            began = time.monotonic()
            ends = filtering.decisions.ends()
            wait_until(lambda: filtering.decisions.fresh(ends), "the standby decides", standby, _START_S)
            print(f"measured takeover: {time.monotonic() - began:.1f} s")  # noqa: T201 - shown by pytest -s
            filtering.drain(standby)
        found = audit(filtering.stage.settings())
        assert (found.lost, found.duplicated, found.unexpected) == (0, 0, 0)


def active_tasks(run: Run) -> list[float]:
    """How many tasks each executor has now."""
    found = metrics(run.port, "executor")
    return [value for name, value in found.items() if name.startswith("fraud_filter_executor_active_tasks/")]
