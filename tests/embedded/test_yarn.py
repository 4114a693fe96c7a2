"""The filter on a real YARN, its driver here and its executors in containers, with the checkpoint in HDFS."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
import pyspark
import pytest

from faults import events, metrics
from filter_under_load import Run, require_features, rules_with_features, settings_of, standby_of
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

    def begin(mode: str, conf: Mapping[str, str] | None = None, **settings: str) -> Run:
        return Run(stage, mode, "yarn", spark_conf=json.dumps(CONF | dict(conf or {})), **own, **settings)

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
@pytest.mark.timeout(900)
def test_of_a_pair_one_hands_over_and_comes_back_when_the_other_s_driver_is_killed(run: Callable[..., Run]) -> None:
    """Each runs its own application."""
    filtering = run("real-time")
    filtering.program._argv.append("--standby")
    with filtering:
        filtering.await_fresh("the start on YARN", _START_S)
        given = {name: value for name, value in settings_of(filtering).items() if name != "standby_warm_up_s"}
        with standby_of(filtering, checkpoint=filtering.program._env["FRAUD_CHECKPOINT"], **given) as (standby, _):
            psutil.Process(standby.pid).send_signal(signal.SIGUSR1)
            wait_until(lambda: bool(events(standby, "taking_over")), "the standby takes over", standby, _START_S)
            filtering.await_fresh("a handover", _START_S)
            waits = lambda: bool(events(filtering.program, "standby_ready"))  # noqa: E731
            wait_until(waits, "the former one waits", filtering.program, _START_S)
            kill_family(standby)
            filtering.await_fresh("kill -9 of the active driver", _START_S)
        assert filtering.end().duplicated == 0


@pytest.mark.exhaustive  # as above
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mode", ["micro-batch", "async-progress"])
def test_batches_go_on_without_an_executor(run: Callable[..., Run], yarn: Yarn, mode: str) -> None:
    with run(mode) as filtering:
        filtering.await_fresh("the start on YARN", _START_S)
        filtering.await_commit()
        yarn.executors[0].kill()
        filtering.await_fresh("kill -9 of an executor", _START_S)
        assert filtering.end().duplicated == 0


@pytest.mark.exhaustive  # as above
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mode", ["real-time", "continuous"])
def test_a_node_that_is_lost_is_replaced_by_another(
    run: Callable[..., Run], hdfs: Hdfs, stage: Stage, tmp_path: Path, java_home: Path, mode: str
) -> None:
    """In real-time mode with features, whose state goes on from the checkpoint."""
    own = {"rules": str(rules_with_features(stage))} if mode == "real-time" else {}
    with Yarn(tmp_path, hdfs, java_home, nodes=2) as two:
        filtering = run(mode, **own)
        filtering.program._env["HADOOP_CONF_DIR"] = str(two.conf_dir)
        with filtering:
            filtering.await_fresh("the start on YARN", _START_S)
            filtering.await_commit()
            before = {process.pid for process in two.executors}
            two.stop_node(two.node_of(two.executors[0]))
            wait_until(lambda: bool(events(filtering.program, "restarting")), "a restart", filtering.program, _START_S)
            filtering.await_fresh("the loss of a node", _START_S)
            assert {process.pid for process in two.executors} - before
            filtering.feed.stop()
            # Not by the last payment: each partition of the state decides those of its periods when it can.
            asked = stage.settings().model_copy(update=filtering._audited)
            wait_until(lambda: audit(asked).lost == 0, "all is decided", filtering.program)
            result = filtering.end()
            assert result.duplicated == 0
            if own:
                require_features(result)


def active_tasks(run: Run) -> list[float]:
    """How many tasks each executor has now."""
    found = metrics(run.port, "executor")
    return [value for name, value in found.items() if name.startswith("fraud_filter_executor_active_tasks/")]
