"""A query of the user's: the shipped examples on a real broker and a real Spark, and what is known of other ones."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest
from kafka.producer.kafka import KafkaProducer
from kafka.structs import TopicPartition
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from faults import events
from fraud_filter.config import load
from fraud_filter.errors import UsageError
from fraud_filter.home import HOME
from fraud_filter.modes import MODES
from fraud_filter.query.places import UnknownPlacesError, carry, read_from
from fraud_filter.query.preflight import Inputs, begin_at, check_plan, count_shuffled, plan_nodes
from fraud_filter.query.user_query import load_user_query
from fraud_filter.supervisor.query_run import plan_query, prepare
from lab.harness.processes import Child, kill_family
from running import PROGRAM, START_S, Stage, call, payment, refusal, wait_until

EXAMPLES = HOME / "app/examples"
#: The enrichment with a second opinion of its values.
JUDGED = f"""
import json, sys
sys.path.append({str(EXAMPLES)!r})
from enrich import transform

def expect(record):
    given = json.loads(record.value)
    row = {{name: str(given[name]) for name in ("payment_id", "amount", "country")}}
    continent = {{"DE": "Europe", "JP": "Asia"}}.get(given["country"])
    return json.dumps(row | ({{"continent": continent}} if continent else {{}}))
"""
exhaustive = pytest.mark.exhaustive


def run(stage: Stage, example: str, mode: str, **settings: str) -> Child:
    query = f"{EXAMPLES / example}.py:transform"
    return stage.run(mode=mode, query=query, rejected_topic="", **settings)


def audit(stage: Stage, file: Path) -> dict[str, Any]:
    """What the verb finds, with the checkpoint at hand."""
    topics = ["--input-topic", stage.input, "--flagged-topic", stage.flagged]
    more = ["--query", f"{file}:transform", "--checkpoint", stage.directory / "checkpoint", "--settle", 0, "--json"]
    told = call("audit", "--kafka-bootstrap-servers", stage.address, *topics, *more)
    assert told.stdout, told.stderr
    found: dict[str, Any] = json.loads(told.stdout)
    assert (told.returncode, found["ok"]) in ((0, True), (1, False))
    assert "is no checkpoint of" not in told.stderr
    return found


def faults(found: dict[str, Any]) -> tuple[int, int, int]:
    return found["lost"], found["duplicated"], found["unexpected"]


def spoil(stage: Stage, admin: Any) -> None:
    """Removes the first row of a partition, and adds a copy of one row, and one of another with another value."""
    first, *_, last_but_one, last = written(stage)
    admin.delete_records({TopicPartition(stage.flagged, first.partition): first.offset + 1})
    producer = KafkaProducer(bootstrap_servers=stage.address, acks="all")
    for row, value in ((last_but_one, last_but_one.value), (last, last.value.replace(b"}", b', "more": 1}'))):
        producer.send(stage.flagged, key=row.key, value=value, headers=row.headers).get(timeout=20)
    producer.close()


def written(stage: Stage) -> list[Any]:
    return stage.written()[stage.flagged]


def place_of(record: Any) -> tuple[int, int]:
    headers = {name: value.decode() for name, value in record.headers}
    assert 0 <= record.timestamp - int(headers["source.timestamp"]) < 600_000
    return int(headers["source.partition"]), int(headers["source.offset"])


@pytest.mark.parametrize(
    "mode",
    ["real-time", pytest.param("micro-batch", marks=exhaustive), pytest.param("async-progress", marks=exhaustive)],
)
@pytest.mark.timeout(420)
def test_the_enrichment_writes_each_record_once_over_a_kill(
    stage: Stage, admin: Any, tmp_path: Path, mode: str
) -> None:
    """Nothing was committed in real-time mode: all is read again. The audit finds what is wrong, and nothing else."""
    countries = {"DE": "Europe", "JP": "Asia", "XX": None}
    sent = [
        (f"c{number}", payment(f"p{number}", number).replace(b'"country": "DE"', f'"country": "{country}"'.encode()))
        for number, country in enumerate([*countries] * 40)
    ]
    places = stage.send(sent[:90])
    with run(stage, "enrich", mode) as program:
        wait_until(lambda: len(written(stage)) >= 90, "all is written", program)
        assert not events(program, "places_unknown")
        kill_family(program)
    places += stage.send(sent[90:])
    with run(stage, "enrich", mode) as program:
        wait_until(lambda: len(written(stage)) >= len(sent), "the others are written", program)
        assert program.stop(30) == 0, program.tail()
    found = {place_of(record): record for record in written(stage)}
    assert (sorted(found), len(written(stage))) == (sorted(places), len(places))
    for place, (key, value) in zip(places, sent, strict=True):
        given, made = json.loads(value), json.loads(found[place].value)
        continent = countries[given["country"]]
        assert (found[place].key.decode(), made["payment_id"]) == (key, given["payment_id"])
        assert made.get("continent") == continent
    right = audit(stage, EXAMPLES / "enrich.py")
    assert (faults(right), right["expected"], right["written"]) == ((0, 0, 0), len(sent), len(sent))
    (tmp_path / "judged.py").write_text(JUDGED)
    spoil(stage, admin)
    wrong = audit(stage, tmp_path / "judged.py")
    assert faults(wrong) == (1, 2, 1)
    assert wrong["examples"]["unexpected"][0]["reason"] == "written with another value than expected"


@pytest.mark.timeout(600)
def test_a_standby_goes_on_after_a_kill_and_a_changed_file_after_a_handover(stage: Stage, tmp_path: Path) -> None:
    """Under records that keep coming; each gives one row, from one file or the other."""
    query, changed = EXAMPLES / "enrich.py", tmp_path / "changed.py"
    changed.write_text(query.read_text().replace("'Europe'", "'EUROPE'"))
    quick = {"mode": "real-time", "real_time_duration": "5 seconds", "standby_warm_up_s": "3", "rejected_topic": ""}
    sent: list[tuple[int, int]] = []

    def send_until(holds: Callable[[], bool], what: str, child: Child) -> None:
        def sent_and_holds() -> bool:
            sent.extend(stage.send((f"c{number}", payment(f"p{number}", number)) for number in range(5)))
            return holds()

        wait_until(sent_and_holds, what, child, 240)

    def child(name: str, *argv: str, file: Path) -> Child:
        env = stage.environment(query=f"{file}:transform", **quick)
        return Child(name, [*PROGRAM, *argv], log=stage.directory / f"{name}.log", env=env)

    with ExitStack() as programs:
        active = programs.enter_context(child("active", "run", file=query))
        send_until(lambda: bool(written(stage)), "the first rows", active)
        standby = programs.enter_context(child("standby", "run", "--standby", file=query))
        send_until(lambda: bool(events(standby, "standby_ready")), "it waits", standby)
        kill_family(active)
        send_until(lambda: bool(events(standby, "started")), "it takes over", standby)
        following = programs.enter_context(child("following", "handover", file=changed))
        send_until(lambda: bool(events(following, "started")), "the changed file takes over", following)
        made_by_it = lambda: any(b"EUROPE" in row.value for row in written(stage))  # noqa: E731
        send_until(made_by_it, "rows of the changed file", following)
        wait_until(lambda: len(written(stage)) >= len(sent), "all is written", following)
        assert events(following, "standby_differs")[-1].endswith("differs_in=query")
        assert (following.stop(60), standby.stop(60)) == (0, 0), following.tail()
    found = audit(stage, changed)
    assert (faults(found), found["written"]) == ((0, 0, 0), len(sent))


@pytest.mark.parametrize("mode", ["micro-batch", pytest.param("real-time", marks=exhaustive)])
def test_the_totals_go_on_over_a_restart_and_are_not_handed_over_to_a_changed_file(
    stage: Stage, tmp_path: Path, mode: str
) -> None:
    def totals() -> dict[str, tuple[int, float]]:
        rows = [json.loads(record.value) for record in written(stage)]
        return {row["card_id"]: (row["payments"], row["amount"]) for row in rows}

    changed = tmp_path / "changed.py"
    changed.write_text((EXAMPLES / "totals.py").read_text().replace("F.sum", "F.max"))
    own = {"mode": mode, "query": f"{changed}:transform", "rejected_topic": "", "standby_warm_up_s": "1"}
    other = Child("the next", [*PROGRAM, "handover"], log=tmp_path / "next.log", env=stage.environment(**own))
    for batch in (1, 2):
        stage.send((f"c{n % 3}", payment(f"p{batch}-{n}", 0.5, f"c{n % 3}")) for n in range(30))
        wanted = {f"c{n}": (10 * batch, 5.0 * batch) for n in range(3)}
        with run(stage, "totals", mode, real_time_duration="10 seconds") as program:
            wait_until(lambda: totals() == wanted, "the totals", program)  # noqa: B023 - it is called here alone
            assert "an aggregation" in str(events(program, "places_unknown"))
            if batch == 2:
                with other:
                    assert other.wait(START_S) == 2, other.tail()
                assert "keeps state, and has changed" in "\n".join(other.tail())  # Java may write after it
            assert program.stop(30) == 0, program.tail()


@pytest.fixture(scope="module")
def records(spark: SparkSession) -> DataFrame:
    """As the source gives them."""
    rate = spark.readStream.format("rate").load()
    none = {"_key": "binary", "_value": "binary", "_topic": "string", "_partition": "int"}
    return rate.select(
        *(F.lit(None).cast(kind).alias(name) for name, kind in none.items()),
        F.col("value").alias("_offset"),
        F.col("timestamp").alias("_timestamp"),
        F.lit(None).cast("array<struct<key:string,value:binary>>").alias("_headers"),
    )


def table(spark: SparkSession, *keys: int) -> DataFrame:
    return spark.createDataFrame([(key,) for key in keys], "k BIGINT")


def same() -> Column:
    return F.col("offset") == F.col("k")


def visible(records: DataFrame) -> DataFrame:
    return records.select(F.col("_value").alias("value"), F.col("_offset").alias("offset"))


Make = Callable[[SparkSession, DataFrame], DataFrame]
WITH = "WITH some AS (SELECT * FROM {rows}) SELECT * FROM some"
ONE_ROW: dict[str, Make] = {
    "columns": lambda _, rows: rows.withColumn("a", F.lit(1)).drop("offset"),
    "filter": lambda _, rows: rows.where("offset > 5").alias("some").select("some.value"),
    "join": lambda spark, rows: rows.join(table(spark, 1, 2), same(), "left").select("value"),
    "semi join": lambda spark, rows: rows.join(table(spark, 1, 1), same(), "left_semi"),
}
OTHERS: dict[str, tuple[Make, str]] = {
    "aggregate": (lambda _, rows: rows.groupBy("value").count(), "an aggregation"),
    "explode": (lambda _, rows: rows.select(F.explode(F.array("offset", "offset"))), "an explode"),
    "union": (lambda _, rows: rows.union(rows), "a union"),
    "same key": (lambda spark, rows: rows.join(table(spark, 1, 1), same()), "with the same key"),
    "range": (lambda spark, rows: rows.join(table(spark, 1, 9), F.col("offset") > F.col("k")), "than equal columns"),
    "with": (lambda spark, rows: spark.sql(WITH, rows=rows), "the operator WithCTE"),
    "table first": (lambda spark, rows: table(spark, 1).join(rows, same()), "on the left side"),
}


@pytest.mark.parametrize("make", ONE_ROW.values(), ids=ONE_ROW)
def test_places_travel_where_a_record_gives_one_row(spark: SparkSession, records: DataFrame, make: Make) -> None:
    rows = make(spark, visible(records))
    carried = carry(rows, records)
    assert carried.columns == [*rows.columns, "_topic", "_partition", "_offset", "_timestamp"]
    assert read_from(records, carried).schema == carried.schema


@pytest.mark.parametrize(("make", "reason"), OTHERS.values(), ids=OTHERS)
def test_places_that_can_not_be_told_are_named(
    spark: SparkSession, records: DataFrame, make: Make, reason: str
) -> None:
    rows = make(spark, visible(records))
    with pytest.raises(UnknownPlacesError, match=reason):
        carry(rows, records)
    assert read_from(records, rows).schema == rows.schema


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("return 5", "returns a int; return a DataFrame made of"),
        ("return records.sparkSession.range(1).selectExpr('\"a\" AS value')", "returns rows that are not made of"),
        ("return records.select('key')", "returns the columns key; return value .string or binary"),
        ("return records.select('value', 'offset')", "returns 'offset' as bigint, which the Kafka sink does not take"),
        ("return records.select(records['offset'].alias('value'))", "'value' as bigint, .* return value .string or"),
        ("return records.select('amount')", r"raises AnalysisException in .*own\.py, line 2: \[UNRESOLVED_COLUMN"),
        ("return records.mapInPandas(iter, 'value binary')", r"raises PySparkImportError .*line 2: .* Pandas .*must"),
        ("return 1 / 0", r"raises ZeroDivisionError in .*own\.py, line 2: division by zero; mend it there"),
    ],
)  # fmt: skip
def test_what_is_no_query_is_refused_by_one_sentence(records: DataFrame, tmp_path: Path, line: str, told: str) -> None:
    (tmp_path / "own.py").write_text(f"def transform(records):\n    {line}\n")
    settings = load({"query": f"{tmp_path}/own.py:transform"})
    query = load_user_query(settings)
    with pytest.raises(UsageError, match=told) as refused:
        query.rows(records, settings)
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith(f"setting query (--query, FRAUD_QUERY): '{tmp_path}/own.py:transform' ")


def test_a_start_calls_the_function_once_and_looks_for_its_keys_once(spark: SparkSession, tmp_path: Path) -> None:
    """A standby prepares its query for the warm-up, for the takeover, and again where other offsets are due."""
    calls = tmp_path / "calls"
    (tmp_path / "own.py").write_text(
        f"import sys; sys.path.append({str(EXAMPLES)!r})\nfrom enrich import transform as enrich\n"
        f"def transform(records):\n    open({str(calls)!r}, 'a').write('called ')\n    return enrich(records)\n"
    )
    settings = load({"query": f"{tmp_path}/own.py:transform"})
    jobs_of = spark.sparkContext.statusTracker().getJobIdsForGroup
    spark.sparkContext.setJobGroup("planned", "")
    inputs = plan_query(spark, Inputs(MODES["micro-batch"], load_user_query(settings), 1), settings)
    spark.sparkContext.setJobGroup("prepared", "")
    for offset in (0, 7):
        at = begin_at(settings, {0: offset}, [0])
        plan = prepare(spark, inputs, at, "id").decisions._jdf.queryExecution().analyzed()
        [source] = (one for one in plan_nodes(plan) if one.isStreaming() and one.children().isEmpty())
        assert source.extraOptions().get("startingOffsets") == at.starting_offsets
    assert calls.read_text() == "called "
    assert (bool(jobs_of("planned")), bool(jobs_of("prepared"))) == (True, False)


def test_an_operator_that_a_mode_can_not_run_is_refused_with_those_that_can(records: DataFrame) -> None:
    rows = visible(records).groupBy("value").count()
    with pytest.raises(UsageError, match=r"an aggregation .*, or give micro-batch, .*real-time to the"):
        check_plan(rows, MODES["continuous"])
    check_plan(rows, MODES["real-time"])
    late = records.withWatermark("_timestamp", "1 minute").dropDuplicatesWithinWatermark(["_value"])
    shuffled = (rows, late, rows.repartition(5), rows.repartition(3, "value"), rows.repartition("value"))
    assert [count_shuffled(one, load({})) for one in shuffled] == [2, 2, 7, 5, 4]
    with pytest.raises(
        UsageError, match=r"async-progress mode can't run: it keeps no state; .* give micro-batch, real"
    ):
        check_plan(rows, MODES["async-progress"])


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ("select(F.udf(bytes, 'binary')('value').alias('value'))", "Spark refuses the query in real-time mode; Spark"),
        ("select('value').repartition(5)", "has 2 partitions, the query's shuffles 5, the application was granted 4 "),
    ],
)
def test_what_only_a_start_finds_ends_the_program(stage: Stage, tmp_path: Path, rows: str, told: str) -> None:
    """Real-time mode runs no Python in rows, and holds a task for each partition; no restart changes that."""
    begin = "from pyspark.sql import functions as F\ndef transform(records):\n    return records."
    (tmp_path / "own.py").write_text(begin + rows)
    stage.send([("c", b"1")])
    with stage.run(mode="real-time", query=f"{tmp_path}/own.py:transform", rejected_topic="") as program:
        assert told in refusal(program, 2)


@exhaustive
@pytest.mark.parametrize("mode", ["micro-batch", "async-progress"])
def test_python_in_rows_runs_in_the_modes_of_batches(stage: Stage, tmp_path: Path, mode: str) -> None:
    """The module is in no process of Spark's but the driver."""
    (tmp_path / "own.py").write_text(
        "from pyspark.sql import functions as F\n"
        "def double(value):\n    return value + value\n"
        "def transform(records):\n    return records.select('key', F.udf(double, 'binary')('value').alias('value'))\n"
    )
    places = stage.send([("c", b"1"), ("d", b"2")])
    with stage.run(mode=mode, query=f"{tmp_path}/own.py:transform", rejected_topic="") as program:
        wait_until(lambda: len(written(stage)) >= len(places), "both are written", program)
        assert "us of CPU a row" in str(events(program, "python_in_rows"))
        assert program.stop(30) == 0, program.tail()
    assert sorted(record.value for record in written(stage)) == [b"11", b"22"]


@exhaustive
def test_the_price_of_python_in_rows(spark: SparkSession) -> None:
    """In CPU time of all processes, which the event `python_in_rows` tells."""
    count = 1_000_000
    rows = spark.range(0, count, 1, 1).select(F.col("id").cast("string").cast("binary").alias("value"))
    columns = {"Spark": F.concat("value", "value"), "Python": F.udf(lambda value: value + value, "binary")("value")}

    def cpu_s() -> float:
        own = psutil.Process()
        return sum(sum(one.cpu_times()[:2]) for one in (own, *own.children(recursive=True)))

    used: dict[str, float] = {}
    for name, column in [*columns.items()] * 2:  # the first time code is compiled, and Python started
        before = cpu_s()
        rows.select(column).write.format("noop").mode("overwrite").save()
        used[name] = cpu_s() - before
    more_us = (used["Python"] - used["Spark"]) / count * 1e6
    print(f"measured Python in rows: {more_us:.1f} us of CPU a row; {used}")  # noqa: T201 - shown by -s
    both = rows.limit(1).select(*columns.values()).first()
    assert both is not None
    assert bytes(both[0]) == bytes(both[1]) == b"00"


def test_the_page_has_the_example_word_by_word() -> None:
    page = (HOME / "docs/your-query.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert shown == (EXAMPLES / "enrich.py").read_text(encoding="utf-8")
    assert all(len(file.read_text(encoding="utf-8").splitlines()) <= 40 for file in EXAMPLES.glob("*.py"))
