"""What a user's settings of Spark can't change: it is refused before Java starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark import SparkConf

from fraud_filter.config import load
from fraud_filter.errors import UsageError
from fraud_filter.spark import session


@pytest.mark.parametrize(
    "master",
    ["foo", "local[", "local[0]", "local[x]", "spark://", "spark://host", "spark://host:port", "http://host:7077",
     "spark:/host:7077", "spark://a:1,b", "mesos://host:5050", "k8s://", "local[2] "],
)  # fmt: skip
def test_what_is_no_address_of_a_master_is_refused_as_such(master: str) -> None:
    with pytest.raises(UsageError, match=r"setting spark_master .* is no address of a Spark master; give local"):
        session.launch(load({"spark_master": master}))


@pytest.mark.parametrize(("master", "jar"), [("yarn", "spark-yarn_"), ("k8s://https://host:6443", "spark-kubernetes_")])
def test_a_manager_whose_jars_are_left_out_is_refused_by_their_name(
    master: str, jar: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(session.spark_jars().glob(f"{jar}*.jar")), "pip's Spark has it"
    monkeypatch.setattr(session, "spark_jars", lambda: tmp_path)
    with pytest.raises(
        UsageError, match=rf"setting spark_master .* needs a jar of Spark's .*: {jar}\*\.jar; take Spark"
    ):
        session.launch(load({"spark_master": master}))


@pytest.mark.parametrize("host", ["127.0.0.1:1", "no-such-host.invalid:7077", "127.0.0.1:1,[::1]:1"])
def test_a_master_that_does_not_answer_is_named_with_the_reason(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_MASTER_ANSWERS_S", 0.0)
    with pytest.raises(UsageError, match=r"setting spark_master .* does not answer: .*: \w+") as told:
        session.launch(load({"spark_master": f"spark://{host}"}))
    assert all(one in str(told.value) for one in host.split(","))


@pytest.mark.parametrize(
    ("master", "own", "asked"),
    [
        ("spark://host:7077", {}, {"spark.cores.max": "5"}),
        ("spark://host:7077", {"spark.cores.max": "8"}, {"spark.cores.max": "8"}),
        ("yarn", {}, {"spark.executor.instances": "5"}),
        ("k8s://https://host:6443", {"spark.executor.cores": "4"}, {"spark.executor.instances": "2"}),
        ("k8s://https://host:6443", {"spark.executor.instances": "1"}, {"spark.executor.instances": "1"}),
        ("local-cluster[2,1,512]", {}, {}),
    ],
)
def test_an_application_asks_each_kind_of_cluster_for_the_cores_that_it_needs(
    master: str, own: dict[str, str], asked: dict[str, str]
) -> None:
    conf = SparkConf(loadDefaults=False).setAll(list(own.items()))
    session.ask_for(conf, master, 5)
    assert dict(conf.getAll()) == own | asked


@pytest.mark.parametrize(
    ("master", "conf", "cores"),
    [
        ("spark://host:7077", {"spark.cores.max": "5", "spark.executor.instances": "9"}, 5),
        ("spark://host:7077", {}, 0),
        ("yarn", {}, 2),
        ("yarn", {"spark.cores.max": "5", "spark.executor.instances": "3"}, 3),
        ("k8s://https://host:6443", {"spark.executor.instances": "2", "spark.executor.cores": "4"}, 8),
        ("local-cluster[2,1,512]", {}, 0),
    ],
)
def test_the_cores_that_are_waited_for_are_those_asked_for(master: str, conf: dict[str, str], cores: int) -> None:
    assert session.asked_cores(SparkConf(loadDefaults=False).setAll(list(conf.items())), master) == cores


@pytest.mark.parametrize(
    ("master", "own", "interval"),
    [
        ("yarn", {}, "1h"),
        ("k8s://https://host:6443", {}, "1h"),
        ("yarn", {"spark.executor.failuresValidityInterval": "1d"}, "1d"),
        ("spark://host:7077", {}, None),
    ],
)
def test_lost_executors_are_not_counted_for_an_applications_whole_life(
    master: str, own: dict[str, str], interval: str | None
) -> None:
    conf = session._conf(load({"spark_master": master, "spark_conf": own}), None)
    assert conf.get("spark.executor.failuresValidityInterval") == interval


@pytest.mark.parametrize(
    ("master", "most"),
    [("local[8]", None), ("local", None), ("local-cluster[2,1,512]", "3"), ("spark://host:7077", "3"), ("yarn", "3")],
)
def test_executors_end_soon_without_their_driver_but_for_the_driver_itself(master: str, most: str | None) -> None:
    """Of a local one heartbeats fail while it copies jars: those of S3 are 674 MB."""
    conf = session._conf(load({"spark_master": master}), None)
    assert conf.get("spark.executor.heartbeat.maxFailures") == most
