"""A query of the user's: the shipped examples on a real broker and a real Spark, and what is known of other ones."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
from fraud_filter.query.places import UnknownPlacesError, carry
from fraud_filter.query.preflight import check_plan
from fraud_filter.query.user_query import load_user_query
from lab.harness.processes import Child, kill_family
from running import PROGRAM, Stage, call, payment, wait_until

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
    assert 0 <= record.timestamp - int(headers["source.timestamp"]) < 120_000
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


@exhaustive
@pytest.mark.timeout(600)
def test_a_standby_goes_on_where_a_killed_one_ended(stage: Stage) -> None:
    query = f"{EXAMPLES}/enrich.py:transform"
    standby = Child(
        "the standby", [*PROGRAM, "run", "--standby"], log=stage.directory / "standby.log",
        env=stage.environment(mode="real-time", query=query, rejected_topic=""),
    )  # fmt: skip
    places = stage.send((f"c{number}", payment(f"p{number}", number)) for number in range(60))
    with run(stage, "enrich", "real-time") as active, standby:
        wait_until(lambda: len(written(stage)) >= len(places), "all is written", active)
        wait_until(lambda: bool(events(standby, "standby_ready")), "it waits", standby, 240)
        kill_family(active)
        places += stage.send((f"c{number}", payment(f"p{number}", number)) for number in range(60, 90))
        wait_until(lambda: len(written(stage)) >= len(places), "the others are written", standby)
        assert standby.stop(30) == 0, standby.tail()
    assert sorted(map(place_of, written(stage))) == sorted(places)


@pytest.mark.parametrize("mode", ["micro-batch", pytest.param("real-time", marks=exhaustive)])
def test_the_totals_go_on_over_a_restart(stage: Stage, mode: str) -> None:
    def totals() -> dict[str, tuple[int, float]]:
        rows = [json.loads(record.value) for record in written(stage)]
        return {row["card_id"]: (row["payments"], row["amount"]) for row in rows}

    for batch in (1, 2):
        stage.send((f"c{n % 3}", payment(f"p{batch}-{n}", 0.5, f"c{n % 3}")) for n in range(30))
        wanted = {f"c{n}": (10 * batch, 5.0 * batch) for n in range(3)}
        with run(stage, "totals", mode, real_time_duration="10 seconds") as program:
            wait_until(lambda: totals() == wanted, "the totals", program)  # noqa: B023 - it is called here alone
            assert "an aggregation" in str(events(program, "places_unknown"))
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
    "table first": (lambda spark, rows: table(spark, 1).join(rows, same()), "on the left side"),
}


@pytest.mark.parametrize("make", ONE_ROW.values(), ids=ONE_ROW)
def test_places_travel_where_a_record_gives_one_row(spark: SparkSession, records: DataFrame, make: Make) -> None:
    rows = make(spark, visible(records))
    assert carry(rows, records).columns == [*rows.columns, "_topic", "_partition", "_offset", "_timestamp"]


@pytest.mark.parametrize(("make", "reason"), OTHERS.values(), ids=OTHERS)
def test_places_that_can_not_be_told_are_named(
    spark: SparkSession, records: DataFrame, make: Make, reason: str
) -> None:
    with pytest.raises(UnknownPlacesError, match=reason):
        carry(make(spark, visible(records)), records)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("return 5", "returns a int; return a DataFrame made of"),
        ("return records.sparkSession.range(1).selectExpr('\"a\" AS value')", "returns rows that are not made of"),
        ("return records.select('key')", "returns the columns key; return value, and key"),
        ("return records.select('value', 'offset')", "returns the column 'offset', which the Kafka sink does not take"),
        ("return records.select(records['offset'].alias('value'))", "as bigint, .*make it string or binary"),
        ("return records.select('amount')", r"raises AnalysisException in .*own\.py, line 2: \[UNRESOLVED_COLUMN"),
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


def test_an_operator_that_a_mode_can_not_run_is_refused_with_those_that_can(records: DataFrame) -> None:
    rows = visible(records).groupBy("value").count()
    with pytest.raises(UsageError, match=r"an aggregation .*, or give micro-batch, .*real-time to the"):
        check_plan(rows, MODES["continuous"])
    check_plan(rows, MODES["real-time"])
    with pytest.raises(
        UsageError, match=r"async-progress mode can't run: it keeps no state; .* give micro-batch, real"
    ):
        check_plan(rows, MODES["async-progress"])


def test_what_spark_alone_finds_ends_the_program(stage: Stage, tmp_path: Path) -> None:
    """Real-time mode runs no Python in rows; no restart changes that."""
    (tmp_path / "own.py").write_text(
        "from pyspark.sql import functions as F\n"
        "def transform(records):\n    return records.select(F.udf(bytes, 'binary')('value').alias('value'))\n"
    )
    program = stage.run(mode="real-time", query=f"{tmp_path}/own.py:transform", rejected_topic="")
    stage.send([("c", b"1")])
    with program:
        assert program.wait(120) == 2, program.tail()
    assert "Spark refuses the query in real-time mode; Spark says: " in program.tail(3)[-1]


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
        assert program.stop(30) == 0, program.tail()
    assert sorted(record.value for record in written(stage)) == [b"11", b"22"]


def test_the_page_has_the_example_word_by_word() -> None:
    page = (HOME / "docs/your-query.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert shown == (EXAMPLES / "enrich.py").read_text(encoding="utf-8")
    assert all(len(file.read_text(encoding="utf-8").splitlines()) <= 40 for file in EXAMPLES.glob("*.py"))
