"""Driver, executors and standby on different hosts; the active driver's host is cut off."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from kafka.admin import KafkaAdminClient

import hosts
from faults import events
from filter_under_load import Run
from fraud_filter.audit.run import audit
from fraud_filter.config import load
from fraud_filter.kafka.topics import load_topics
from hosts import HERE, Host
from lab.harness.broker import Broker
from lab.harness.workspace import Workspace
from running import START_S, Stage, create_topic, until, wait_until
from standalone_cluster import Cluster

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(hosts.missing()), reason=hosts.missing() or "none"),
]
#: What the firewall of a driver's host lets in, as docs/standby.md says.
_DRIVER_PORT, _BLOCKS_PORT = 7079, 7080
_LOCK_S = 6
#: Three heartbeats without an answer, of 5 s with as long a wait, and what a busy machine adds.
_EXECUTORS_END_S = 60.0


class _Broker(Broker):
    """At the address that the hosts know this machine by."""

    @property
    def address(self) -> str:
        return f"{HERE}:{self._port}"


@pytest.fixture
def network() -> Iterator[list[Host]]:
    with hosts.open_hosts("active", "standby", "workers") as network:
        yield network


@pytest.fixture
def stage(network: list[Host], tmp_path: Path, java_home: Path, kafka_jars: list[Path]) -> Iterator[Stage]:
    """A broker that the hosts reach, and a checkpoint on a file system that they share."""
    assert network
    with (
        hosts.shared_folder(tmp_path / "checkpoint", tmp_path / "disk"),
        Workspace("hosts-") as workspace,
        _Broker(workspace, java_home=java_home, jars=kafka_jars) as broker,
    ):
        admin = KafkaAdminClient(bootstrap_servers=broker.address)
        config = {spec.name: spec.config for spec in load_topics(load())}["payments"]
        create: Callable[..., str] = create_topic
        payments, flagged, rejected = (create(admin, name, **config) for name in ("payments", "flagged", "rejected"))
        admin.close()
        yield Stage(broker.address, payments, flagged, rejected, directory=tmp_path)


@pytest.fixture
def cluster(network: list[Host], tmp_path: Path) -> Iterator[Cluster]:
    """The master runs on this machine, the worker on another host."""
    (tmp_path / "work").mkdir()
    workers = network[2]
    with Cluster(tmp_path, HERE, cores=8) as cluster:
        workers.run(cluster.new_worker(host=workers.address)).start()
        yield cluster


def filter_on(host: Host, stage: Stage, cluster: Cluster, **settings: str) -> Run:
    """A filter whose driver is on the host, behind a firewall that lets in what it must."""
    conf = {
        "spark.driver.host": host.address,
        "spark.driver.port": str(_DRIVER_PORT),
        "spark.driver.blockManager.port": str(_BLOCKS_PORT),
        "spark.executor.memory": "512m",
    }
    host.let_in(_DRIVER_PORT, _BLOCKS_PORT)
    run = Run(stage, "real-time", cluster.url, spark_conf=json.dumps(conf), **settings)
    run.program._argv.append("--standby")
    host.run(run.program)
    return run


def test_a_standby_goes_on_when_the_active_driver_s_host_is_cut_off(
    network: list[Host], stage: Stage, cluster: Cluster
) -> None:
    """Its executors, which still reach the brokers, end by themselves; what they wrote until then is counted."""
    active, standby, _ = network
    quick = {"checkpoint_lock_timeout_s": str(_LOCK_S), "real_time_duration": "1 minute", "standby_warm_up_s": "3"}
    with filter_on(active, stage, cluster, **quick) as run:
        run.await_fresh("the start with executors on another host", START_S)
        assert executors_of(active)
        other = filter_on(standby, stage, cluster, **quick).program
        with other:
            wait_until(lambda: bool(events(other, "standby_ready")), "the standby is ready", other, START_S)
            with active.cut_off():
                began = time.monotonic()
                wait_until(lambda: bool(events(other, "taking_over")), "it takes over", other, START_S)
                run.await_fresh("the cut", START_S)
                print(f"measured until fresh decisions: {time.monotonic() - began:.1f} s")  # noqa: T201
                until(lambda: not executors_of(active), "the former's executors end", _EXECUTORS_END_S)
                print(f"measured until the executors ended: {time.monotonic() - began:.1f} s")  # noqa: T201
            waits = lambda: bool(events(run.program, "standby_ready"))  # noqa: E731
            wait_until(waits, "the former one waits", run.program, START_S)
            run.drain(other)
    found = audit(stage.settings())
    print(f"measured: {found.duplicated} duplicated, {found.late_writes} late writes")  # noqa: T201
    assert (found.lost, found.unexpected) == (0, 0)
    assert found.duplicated <= found.late_writes


def executors_of(driver: Host) -> list[psutil.Process]:
    """Executors, wherever they run, of the driver on this host."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(f"@{driver.address}:" in word for word in process.info["cmdline"] or [])
        and any("CoarseGrainedExecutorBackend" in word for word in process.info["cmdline"] or [])
    ]
