"""What the outputs hold is known before a start writes anything, and nothing of it is written again."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyroaring import BitMap64

from filter_under_load import rules_with_features
from fraud_filter import schema as layout
from fraud_filter.audit.run import audit
from fraud_filter.kafka.admin import find_input, open_admin
from fraud_filter.metrics.server import Registry
from fraud_filter.probe.probe import Probe
from fraud_filter.query import sinks
from fraud_filter.query.once import Written
from fraud_filter.query.preflight import check_inputs
from fraud_filter.records import decision_id
from fraud_filter.supervisor import written
from fraud_filter.supervisor.query_run import prepare, start
from fraud_filter.supervisor.signals import Stop
from fraud_filter.supervisor.written import WrittenDecisions
from outputs import Outputs, large
from running import Stage, in_mode, until


@pytest.fixture
def reader(stage: Stage) -> Iterator[WrittenDecisions]:
    made = WrittenDecisions(stage.settings())
    yield made
    made.close()


def topic_id(stage: Stage) -> str:
    return find_input(open_admin(stage.settings()), stage.settings()).id


def settled(reader: WrittenDecisions, stage: Stage, at: Mapping[int, int]) -> set[int]:
    reader.follow(topic_id(stage), at)
    return set(reader.settle(Stop(1)))


def test_decisions_on_what_is_not_committed_are_known(reader: WrittenDecisions, stage: Stage, outputs: Outputs) -> None:
    first, second = outputs.pay(*large(6)), outputs.pay(*large(4), partition=1)
    own = topic_id(stage)
    outputs.flag([*first[:5], second[2]], topic_id=own)
    outputs.flag([first[5]], topic_id="of-another-topic-of-this-name")
    outputs.foreign()
    outputs.flag([second[3]], topic_id=own, headers={layout.HEADER_OFFSET: "none"})
    known = {decision_id(0, number) for number in range(2, 5)} | {decision_id(1, 2)}
    assert settled(reader, stage, {0: 2, 1: 0}) == known
    outputs.flag([first[5]], topic_id=own, partition=1)
    assert settled(reader, stage, {0: 4, 1: 0}) == {decision_id(0, 4), decision_id(0, 5), decision_id(1, 2)}
    assert settled(reader, stage, {0: 0, 1: 0}) == {decision_id(0, number) for number in range(6)} | {decision_id(1, 2)}


def test_approvals_of_a_filter_that_decided_all_are_known(topics: Any, stage: Stage, outputs: Outputs) -> None:
    """Other rules could flag what is approved."""
    first, second = outputs.pay(*large(2))
    approved = topics("approved")
    outputs.flag([first], topic_id=topic_id(stage))
    outputs.flag([second], topic_id=topic_id(stage), topic=approved)
    reader = WrittenDecisions(stage.settings().model_copy(update={"approved_topic": approved}))
    assert settled(reader, stage, {0: 0, 1: 0}) == {decision_id(0, first.offset), decision_id(0, second.offset)}
    reader.close()


def test_what_comes_while_it_settles_is_known_too(
    reader: WrittenDecisions, stage: Stage, outputs: Outputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was killed has sent it, or one dies slowly."""
    quiet_s = 1.0  # a busy machine appends less often than its own asks for
    monkeypatch.setattr(written, "QUIET_S", quiet_s)
    paid, own = outputs.pay(*large(20)), topic_id(stage)
    reader.follow(own, {0: 0, 1: 0})

    def write() -> None:
        for one in paid:
            outputs.flag([one], topic_id=own)
            time.sleep(quiet_s / 8)

    outputs.flag(paid[:1], topic_id=own)
    slow = threading.Thread(target=write)
    slow.start()
    found = set(reader.settle(Stop(1)))
    slow.join()
    assert found == {decision_id(0, one.offset) for one in paid}


@pytest.mark.parametrize("partitions", [2, 1])
def test_a_writer_that_goes_on_is_waited_for_while_no_partition_waits(
    reader: WrittenDecisions, stage: Stage, outputs: Outputs, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    """Executors whose driver was cut off decide on; where that is in some partitions alone, the others do not wait."""
    for name, seconds in (("QUIET_S", 1.5), ("_NOISY_S", 2.0), ("_WAITS_S", 1.0)):
        monkeypatch.setattr(written, name, seconds)
    own = topic_id(stage)
    paid = [outputs.pay(*large(20), partition=number) for number in range(2)]
    decided = [one for pair in zip(*paid[:partitions], strict=True) for one in pair]
    reader.follow(own, {0: 0, 1: 0})
    begun = threading.Event()

    def write() -> None:
        for one in decided:
            outputs.flag([one], topic_id=own)
            begun.set()
            time.sleep(5 / len(decided))

    slow = threading.Thread(target=write)
    slow.start()
    assert begun.wait(30)
    found = set(reader.settle(Stop(1)))
    slow.join()
    all_of_it = {decision_id(number, one.offset) for number in range(partitions) for one in paid[number]}
    assert found == all_of_it if partitions == 2 else found < all_of_it


def test_without_append_times_it_is_said_that_decisions_may_repeat(
    topics: Any, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stamped = topics("stamped", **{"message.timestamp.type": "CreateTime"})
    reader = WrittenDecisions(stage.settings().model_copy(update={"input_topic": stamped}))
    reader.follow("", {0: 0, 1: 0})
    assert not reader.settle(Stop(1))
    assert "decisions_may_repeat" in caplog.text


ROWS = "_partition INT, _offset BIGINT"


def test_decided_payments_are_dropped_also_where_they_are_told_after_the_plan_was_made(spark: Any) -> None:
    written = Written()
    left = spark.createDataFrame([(n, at) for n in (0, 3) for at in (0, 1, 2**47)], ROWS).where(written.is_new())
    assert left.count() == 6
    written.fill(BitMap64([decision_id(0, 1), decision_id(3, 2**47), decision_id(4, 0)]))
    assert sorted(map(tuple, left.collect())) == [(0, 0), (0, 2**47), (3, 0), (3, 1)]
    assert "*(1) Filter" in left._jdf.queryExecution().explainString(
        spark._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("simple")
    )


#: The first try of each task fails after its first row, as after the loss of an executor, and Spark tries again.
TRIED_AGAIN = f"""
from pyspark.sql import functions as F
from fraud_filter.config import load
from fraud_filter.modes import MODES
from fraud_filter.query.once import Written, _attempt
from fraud_filter.spark import session
spark = session.start(load({{"spark_master": "local[1,3]"}}), MODES["micro-batch"])
row = spark.createDataFrame([(0, 0)], "{ROWS}")
first = F.when(_attempt("attemptNumber") == 0, F.raise_error(F.lit("first try"))).otherwise(F.lit(1))
for decisions in (row, row.where(Written().is_new())):
    try:
        print(decisions.select(first.alias("tried")).collect())
    except Exception as error:
        print("a task is not tried again" in str(error))
spark.stop()
"""


def said_by(script: str) -> list[str]:
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=240)
    return run.stdout.splitlines()


def test_a_task_that_spark_tries_again_ends_the_query() -> None:
    assert said_by(TRIED_AGAIN) == ["[Row(tried=1)]", "True"]


FAILS = """
from fraud_filter.config import load
from fraud_filter.modes import MODES
from fraud_filter.spark import session
spark = session.start(load({"spark_master": "local-cluster[1,1,1024]"}), MODES["real-time"])
try:
    spark.range(1).selectExpr("raise_error('the broker is gone at ' || id)").collect()
except Exception as error:
    print("the broker is gone at 0" in str(error))
context = spark.sparkContext._jsc.sc()
context.listenerBus().waitUntilEmpty()
executors = context.statusStore().executorList(True)
print(sum(executors.apply(at).failedTasks() for at in range(executors.size())))
spark.stop()
"""


def test_a_task_that_fails_on_a_cluster_is_not_tried_again() -> None:
    """One that fails when its batch is over would read nothing the second time, and end well."""
    assert said_by(FAILS) == ["True", "1"]


#: The output of the first stage goes before the second one reads it, as with a lost executor: Spark runs both again.
RUN_AGAIN = f"""
import sys
from pathlib import Path
from fraud_filter.config import load
from fraud_filter.modes import MODES
from fraud_filter.query.once import Written
from fraud_filter.spark import session
settings = load({{"spark_master": "local[1]", "spark_conf": {{"spark.local.dir": sys.argv[1]}}}})
spark = session.start(settings, MODES["micro-batch"])
rows = spark.createDataFrame([(0, 0), (0, 1)], "{ROWS}").repartition(1, "_partition")
for decisions in (rows, rows.where(Written().is_new())):
    stages = decisions._jdf.queryExecution().toRdd()
    stages.count()
    for file in Path(sys.argv[1]).rglob("shuffle_*"):
        file.unlink()
    try:
        print(stages.count())
    except Exception as error:
        print("a task is not tried again" in str(error))
spark.stop()
"""


def test_a_stage_that_spark_runs_again_ends_the_query(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", RUN_AGAIN, str(tmp_path)]
    run = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=240)
    assert run.stdout.splitlines() == ["2", "True"]


@pytest.mark.parametrize(
    ("mode", "rules"), [("continuous", "rules"), ("real-time", "rules"), ("real-time", "features")]
)
def test_a_long_task_that_spark_tries_again_writes_nothing(
    spark: Any, stage: Stage, topics: Any, tmp_path: Path, mode: str, rules: str
) -> None:
    """As when an executor is lost that another replaces before the query ends."""
    stage = replace(stage, input=topics("payments", partitions=1))
    own: dict[str, Any] = {"mode": mode, "checkpoint": str(tmp_path / "checkpoint"), "velocity_partitions": 1}
    if rules == "features":
        own["rules"] = rules_with_features(stage)
    settings = stage.settings().model_copy(update=own)
    inputs = check_inputs(settings)

    def pay() -> bool:
        return bool(stage.send([("c", large(1)[0])]))

    with in_mode(spark, inputs.mode, settings):
        query = start(sinks.write(prepare(spark, inputs, settings, "").decisions, inputs.mode, settings, 0), settings)
        try:
            until(lambda: pay() and len(stage.written()[stage.flagged]) > 5, "some decisions", 90)
            context = spark._jsc.sc()
            first = min(spark.sparkContext.statusTracker().getActiveStageIds())
            task = context.statusStore().taskList(first, 0, 1).apply(0).taskId()
            assert context.killTaskAttempt(task, True, "as a lost one")
            until(lambda: pay() and not query.isActive, "the end of the query")
            assert audit(settings).duplicated == 0
        finally:
            query.stop()


def test_writes_of_a_filter_that_was_replaced_are_counted(stage: Stage, outputs: Outputs) -> None:
    registry = Registry()
    with Probe(stage.settings(), registry) as probe:
        paid = outputs.pay(*large(3))
        for number, writer in enumerate((1, 2, 1, 2, 1)):
            outputs.flag([paid[number % 3]], headers={layout.HEADER_WRITER: str(writer)})
            time.sleep(0.01)  # a record of another millisecond
        until(lambda: probe.snapshot().flagged == 5, "all records")
    late = registry.get_sample_value("fraud_filter_late_writes_total", {"mode": "micro-batch", "query": "fraud-filter"})
    assert late == 2
    found = audit(stage.settings())
    assert (found.late_writes, found.duplicated) == (2, 2)
