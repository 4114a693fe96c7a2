"""`fraud-filter check-query`: a verdict for each mode, and whether the engine comes to the same one."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fraud_filter.config import ModeName, load
from fraud_filter.home import HOME
from fraud_filter.modes import MODES, V1_CHECKPOINTS, Mode
from fraud_filter.query import sinks, sources
from fraud_filter.query.once import Written
from fraud_filter.query.preflight import count_shuffled
from fraud_filter.query.user_query import load_user_query
from fraud_filter.query.verdicts import find_refusal
from running import Stage, call, in_mode, until

AGGREGATE = "aggregation (groupBy, count, distinct), which {} mode can't run"
START = """from lab.bench import nexmark
from pyspark.sql import Window, functions as F
def transform(records):
    rows = records.select('key', 'value', 'timestamp')
    numbers = records.sparkSession.range(2)
    keys = numbers.where('id = 1').select(F.lit(b'c').alias('key'))
"""
#: Each is a line of a function; they may follow each other.
OPERATORS = (
    "rows.withColumn('value', F.concat('value', 'value'))",
    "rows.where('length(value) > 0')",
    "rows.withColumn('value', F.udf(bytes, 'binary')('value'))",
    "rows.withColumn('value', F.current_timestamp().cast('string').cast('binary'))",
    "rows.withColumn('value', F.explode(F.array('value', 'value')))",
    "rows.withWatermark('timestamp', '1 minute')",
    "rows.union(rows)",
    "rows.join(records.select('key'), 'key')",
    "rows.join(F.broadcast(records.sparkSession.range(2).select(F.lit(b'c').alias('key'))), 'key', 'left')",
    "rows.join(keys, 'key', 'left_semi')",
    "rows.dropDuplicates(['key'])",
    "rows.distinct()",
    "rows.groupBy('key').agg(F.max('value').alias('value'), F.max('timestamp').alias('timestamp'))",
    "rows.withColumn('n', F.row_number().over(Window.partitionBy('key').orderBy('timestamp'))).drop('n')",
    "rows.repartition(1)",
    "rows.sort('key')",
    "rows.limit(5)",
)
#: Queries; `make test-all` starts each in each mode, and those of `ALONE`.
DRAWN = 34
ALONE = (
    "rows.coalesce(1)",
    "rows.repartition(1, 'key')",
    "rows.repartitionByRange(1, 'key')",
    "rows.repartitionByRange(2, 'key')",
    "rows.sortWithinPartitions('key')",
    "rows.sample(0.999, seed=1)",
    "rows.offset(1)",
    "rows.hint('broadcast')",
    "rows.hint('coalesce', 1)",
    "rows.observe('seen', F.count(F.lit(1)).alias('n'))",
    "rows.withWatermark('timestamp', '1 minute').dropDuplicatesWithinWatermark(['key'])",
    "rows.withColumn('value', F.rand().cast('string').cast('binary'))",
    "rows.withColumn('value', F.expr('uuid()').cast('binary'))",
    "rows.withColumn('value', F.monotonically_increasing_id().cast('string').cast('binary'))",
    "rows.selectExpr('key', 'stack(2, value, value) AS value', 'timestamp')",
    "rows.select('key', 'timestamp', F.posexplode(F.array('value')).alias('at', 'value')).drop('at')",
    "rows.lateralJoin(numbers.select((F.col('id') + F.length(F.col('value').outer())).alias('n'))).drop('n')",
    "rows.lateralJoin(numbers).drop('id')",
    "rows.subtract(keys.select('key', F.lit(b'2').alias('value'), F.current_timestamp().alias('timestamp')))",
    "rows.crossJoin(numbers).drop('id')",
    "rows.join(numbers, F.length('key') > F.col('id')).drop('id')",
    "rows.join(keys.hint('merge'), 'key')",
    "rows.join(keys.groupBy('key').count().drop('count'), 'key')",
    "records.sparkSession.sql('SELECT DISTINCT * FROM {rows}', rows=rows)",
    "records.sparkSession.sql('FROM {rows} |> WHERE length(value) > 0', rows=rows)",
    "records.sparkSession.sql('WITH some AS (SELECT * FROM {rows}) SELECT * FROM some', rows=rows)",
    "rows.where('length(value) IN (SELECT id FROM range(9))')",
    "rows.where('length(value) NOT IN (SELECT id + 5 FROM range(9))')",
    "rows.where('NOT EXISTS (SELECT id FROM range(9) WHERE id > length(value) + 20)')",
    *(f"nexmark.q{number}(records)" for number in (0, 1, 14, 21, 22)),
)


def verdicts(query: str, code: int = 0) -> dict[str, str]:
    done = call("check-query", query)
    assert done.returncode == code, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 5
    return {name: said.strip() for name, _, said in (line.partition(" ") for line in lines)}


def test_the_table_of_an_aggregate(tmp_path: Path) -> None:
    file = HOME / "app/examples/totals.py"
    told = verdicts(f"{file}:transform")
    assert (told["micro-batch"], told["real-time"]) == ("yes", "yes")
    for mode in ("async-progress", "continuous"):
        assert told[mode].startswith("no: ")
        assert AGGREGATE.format(mode) in told[mode]
        [line] = (number for number, text in enumerate(file.read_text().splitlines(), 1) if "groupBy" in text)
        assert told[mode].endswith(f" (line {line})")
    reason = "as the query contains an aggregation (groupBy, count, distinct)"
    assert told["latency,"].endswith(f"not known, {reason}")
    audited = call("audit", "--query", f"{file}:transform", "--checkpoint", tmp_path / "none")
    assert audited.returncode == 2, audited.stderr
    assert f"can't be audited, {reason}; the audit takes queries" in audited.stderr


def drawn() -> list[tuple[str, ...]]:
    """Each operator by itself, then pairs of them, without one twice, then `ALONE`; the same at each run."""
    pairs = [(one, other) for one in OPERATORS for other in OPERATORS if one != other]
    queries = [*((one,) for one in OPERATORS), *random.Random(1).sample(pairs, DRAWN - len(OPERATORS))]
    return [*queries, *((one,) for one in ALONE)]


def verdicts_of(spark: SparkSession, stage: Stage, mode: Mode, query: str, checkpoint: Path) -> tuple[str, str]:
    """What our check says against the query, and Spark when it is started: "" where either has nothing to say."""
    own = {"mode": mode.name, "query": query, "checkpoint": str(checkpoint)}
    quick = {"velocity_partitions": "1", "continuous_interval": "1 second", "real_time_duration": "5 seconds"}
    topics = stage.settings().model_dump(include={"kafka_bootstrap_servers", "input_topic", "flagged_topic"})
    settings = load({**topics, **quick, **own})
    function = load_user_query(settings)
    with in_mode(spark, mode, settings):
        records = sources.read(spark, mode, function.schema, settings, 1)
        rows = function.rows(records, settings)
        if count_shuffled(rows, settings):
            spark.conf.set(V1_CHECKPOINTS, "false")
        told = find_refusal(rows, mode)
        decisions = function.plan(rows, records).decide(records, settings, "", Written())
        before = len(stage.written()[stage.flagged])
        try:
            running = sinks.write(decisions, mode, settings, 1).start()
        except PySparkException as error:
            return told, str(error)
        try:
            until(lambda: not running.isActive or len(stage.written()[stage.flagged]) > before, "a row, or an end", 90)
            return told, str(running.exception() or "")
        finally:
            running.stop()


@pytest.fixture
def one_partition(stage: Stage, topics: Callable[..., str]) -> Stage:
    """Continuous and real-time mode hold a task for each, and the shared session has two."""
    return replace(stage, input=topics("payments", partitions=1))


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("mode", get_args(ModeName))
def test_each_engine_comes_to_the_same_verdict(
    spark: SparkSession, one_partition: Stage, tmp_path: Path, mode: ModeName, step: int
) -> None:
    """Spark's engine is started on each query, also on those that our own check refuses."""
    one_partition.send((key, b"1") for key in "cdc")
    wrong = []
    first, last = get_args(ModeName).index(mode) % step, None if step == 1 else DRAWN
    for number, lines in list(enumerate(drawn()))[first:last:step]:
        file = tmp_path / f"own{number}.py"
        file.write_text(
            START + "".join(f"    rows = {line}\n" for line in lines) + "    return rows.drop('timestamp')\n"
        )
        told, done = verdicts_of(spark, one_partition, MODES[mode], f"{file}:transform", tmp_path / f"at{number}")
        if bool(told) != bool(done):
            wrong.append((lines, told, done.partition("\n")[0]))
    assert wrong == []
