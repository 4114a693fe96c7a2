"""A short bench as a user runs it: real broker, real Spark, what it writes, and what a kill does to other engines."""

from __future__ import annotations

import json
import os
import subprocess
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from browser import measure
from exhaustive import exhaustive
from fraud_filter.home import HOME
from lab.bench import nexmark, published
from lab.bench.flink import program as flink
from running import PROGRAM, call, until

CHANGE = "partitions=3;linger_ms=1"
SECONDS = 6
#: One rate, one round, as short as figures allow; twice as much as 100/s for more of them.
SHORT = ("--rates", "200", "--rounds", "1", "--seconds", str(SECONDS))
ENRICH = f"{HOME / 'app/examples/enrich.py'}:transform"
QUICK = ("--warmup", "3", "--warmup-rate", "300", "--settle", "1")


class Ran(NamedTuple):
    """What a bench has written, what it said, and the checkpoints that were seen where a contender wanted them."""

    output: Path
    said: str
    names: list[str]
    place: Path
    checkpoints: set[Path]


@pytest.fixture(scope="module", params=exhaustive((1, 3), but=[1]), ids=["one", "three"])
def ran(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Ran:
    """A bench of a mode with other settings and another checkpoint, and as it is, and of a query that copies."""
    directory = tmp_path_factory.mktemp("bench")
    place, log, output = directory / "checkpoints", directory / "log", directory / "out"
    place.mkdir()
    names = [f"real-time:{CHANGE};checkpoint={place}", "real-time", "copy"][: request.param]
    argv = [*PROGRAM, "lab", "bench", "--contenders", ",".join(names), *SHORT, *QUICK]
    env = {**os.environ, "TMPDIR": str(directory)}
    checkpoints: set[Path] = set()
    with (
        log.open("w") as said,
        subprocess.Popen([*argv, "--output", str(output)], cwd=directory, env=env, stdout=said, stderr=said) as bench,
    ):

        def has_ended() -> bool:
            checkpoints.update(metadata.parent for metadata in place.glob("*/metadata"))
            return bench.poll() is not None

        try:
            until(has_ended, "the bench ends", timeout_s=450)
        finally:
            bench.terminate()  # when it is too late; otherwise it has ended
    assert bench.returncode == 0, log.read_text()
    return Ran(output, log.read_text(), names, place, checkpoints)


@pytest.fixture(scope="module")
def report(ran: Ran) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((ran.output / "bench-report.json").read_text())
    return data


@pytest.mark.timeout(540)  # four minutes on two cores where nothing else runs
def test_every_contender_is_measured_and_audited(ran: Ran, report: dict[str, Any]) -> None:
    assert report["ok"] is True
    assert sorted(result["mode"] for result in report["results"]) == sorted(ran.names)  # started in random order
    for result in report["results"]:
        assert (result["lost"], result["duplicated"], result["unexpected"]) == (0, 0, 0)
        latencies = [result[f"due_{name}_ms"] for name in ("p50", "p90", "p99", "max")]
        assert 0 < latencies[0] <= latencies[1] <= latencies[2] <= latencies[3]
        assert result["due_p999_ms"] is None  # too few decisions
        assert result["due_mean_ms"] > result["append_mean_ms"] > 0
        assert result["broker_cpu_s_per_1000"] > 0
        assert result["kept_rate"] == pytest.approx(200, rel=0.1)
        assert result["cpu_s_per_1000"] > 0
        assert result["rss_mib"] > 50
    median = {result["mode"]: result["due_p50_ms"] for result in report["results"]}
    compared = {(one["first"], one["second"]): one["due_p50_ms"] for one in report["compared"]}
    assert list(compared) == list(pairwise(ran.names))
    for (first, second), ratio in compared.items():
        assert ratio["ratio"] == pytest.approx(median[first] / median[second], rel=0.01)
        assert (ratio["low"], ratio["verdict"]) == (None, "not told apart")  # one round has no scatter
    assert {"kafka", "spark"} <= report["versions"].keys()
    assert report["broker_alone"]["mean_ms"] > 0
    assert sorted(report["plans"]) == sorted(ran.names)
    assert all(("payments.rejected" in plan) == (name != "copy") for name, plan in report["plans"].items())
    assert all(f"At 200/s {first} against {second}: p50 " in ran.said for first, second in compared)
    assert "Traceback" not in ran.said


def test_a_checkpoint_lies_where_a_contender_wants_it_and_is_gone_at_the_end(ran: Ran) -> None:
    assert len(ran.checkpoints) == 1
    assert list(ran.place.iterdir()) == []


def test_the_raw_figures_agree_with_each_other(report: dict[str, Any]) -> None:
    for start in report["rounds"]:
        (rate,) = start["rates"]
        assert rate["payments"] == pytest.approx(200 * SECONDS, rel=0.02)
        written = 1 if start["contender"] == "copy" else 0.5  # half are flagged
        assert rate["decisions"] == pytest.approx(rate["payments"] * written, rel=0.2)
        assert 0.5 < rate["decided_share"] <= 1  # waits grow where other tests take the processors
        assert sum(rate["due_20us"].values()) == rate["decisions"]
        # The due time comes before the append.
        assert rate["due"]["mean_ms"] > rate["append_mean_ms"]
        assert 0 <= rate["stolen_share"] < 1
        assert start["first_decision_s"] > 0


def test_all_files_are_there_and_a_browser_shows_the_page(ran: Ran, tmp_path: Path) -> None:
    names = {path.name for path in ran.output.iterdir()}
    assert names == {"bench-report.html", "bench-report.json", "bench-percentiles-200.png"}
    told = measure(ran.output / "bench-report.html", tmp_path)
    assert len(told["plots"]) == 1
    assert (told["outside"], told["loaded"], told["wide"]) == ([], [], False)


def test_a_query_that_no_mode_of_the_bench_can_run_is_refused_with_the_reason() -> None:
    query = f"{HOME / 'app/examples/totals.py'}:transform"
    ran = call("lab", "bench", "--query", query, "--contenders", "continuous")
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert "continuous is left out: " in ran.stdout
    assert f"no mode can run {query}" in ran.stderr


@pytest.mark.parametrize(
    ("query", "told"),
    [((), "argument --replay: goes with --query"), (("--query", ENRICH), "there is no column 'payment_id'")],
    ids=["rules", "columns"],
)
def test_a_file_that_can_not_be_replayed_is_refused(query: tuple[str, ...], told: str, tmp_path: Path) -> None:
    file = tmp_path / "payments.csv"
    file.write_text("id\n1\n")
    ran = call("lab", "bench", *query, "--replay", file)
    assert (ran.returncode, "Traceback" in ran.stderr) == (2, False)
    assert told in ran.stderr


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_a_query_is_measured_under_the_records_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "payments.jsonl"
    payment = {"card_id": "c1", "amount": 10.5, "currency": "EUR", "country": "DE", "merchant": "m1"}
    payment |= {"created_at": "2026-01-01T00:00:00.000Z"}
    file.write_text("".join(json.dumps({"payment_id": f"recorded-{i}", **payment}) + "\n" for i in range(5000)))
    own = ("--contenders", "real-time", "--query", ENRICH, "--replay", file, "--output", tmp_path)
    ran = call("lab", "bench", *own, *SHORT, *QUICK, timeout_s=280)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    report = json.loads((tmp_path / "bench-report.json").read_text())
    assert report["settings"]["replay"] == str(file)
    (result,) = report["results"]
    assert result["kept_rate"] == pytest.approx(200, rel=0.1)
    assert (result["lost"], result["duplicated"], result["unexpected"]) == (0, 0, 0)
    assert result["due_p50_ms"] > 0


@pytest.mark.exhaustive
@pytest.mark.timeout(420)
@pytest.mark.parametrize(
    "function",
    ["encode", "drop_duplicates", "count_in_windows", "encode_start", "count_values", "join_with_table", "q21"],
)
def test_rows_of_a_published_query_tell_their_latency(function: str, tmp_path: Path) -> None:
    query = f"{(nexmark if function == 'q21' else published).__file__}:{function}"
    own = ("--contenders", "spark,real-time", "--query", query, "--partitions", "5", "--output", tmp_path)
    ran = call("lab", "bench", *own, *SHORT, *QUICK, timeout_s=400)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    report = json.loads((tmp_path / "bench-report.json").read_text())
    assert sorted(result["mode"] for result in report["results"]) == ["real-time", "spark"]
    repeats = {"drop_duplicates": 0.8, "q21": 0.95}.get(function, 1)
    for start in report["rounds"]:
        (rate,) = start["rates"]
        assert rate["decisions"] == pytest.approx(200 * SECONDS * repeats, rel=0.05)
        assert 0 < rate["due"]["p50_ms"] <= rate["due"]["p99_ms"]


def due(bid: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What each of Nexmark's queries makes of a bid, by Python; those that leave it out are not named."""
    hour, euros = int(bid["dateTime"][11:13]), Decimal("0.908") * int(bid["price"])
    time = "dayTime" if 8 <= hour <= 18 else "otherTime" if hour in (7, 19) else "nightTime"
    ids = {"Apple": "0", "Google": "1", "Facebook": "2", "Baidu": "3"}
    channel_id = ids.get(bid["channel"], bid["url"].partition("&channel_id=")[2])
    folders = dict(zip(("dir1", "dir2", "dir3"), bid["url"].split("/")[3:], strict=False))
    whole = {name: bid[name] for name in ("auction", "bidder", "price", "dateTime", "extra")}
    short = {name: bid[name] for name in ("auction", "bidder", "price", "channel")}
    rows = {"q0": whole, "q1": {**whole, "price": euros}, "q22": {**short, **folders}}
    if bid["auction"] % 123 == 0:
        rows["q2"] = {name: bid[name] for name in ("auction", "price")}
    if 1_000_000 < euros < 50_000_000:
        rows["q14"] = {**whole, "price": euros, "bidTimeType": time, "c_counts": bid["extra"].count("c")}
    return {**rows, "q21": {**short, "channel_id": channel_id}} if channel_id else rows


def test_the_queries_of_nexmark_make_what_it_defines(spark: SparkSession) -> None:
    columns = ("'k' AS key", "0 AS partition", "id AS offset", "timestamp_seconds(id * 37) AS timestamp")
    records = spark.range(5_000).selectExpr(*columns)
    wanted = [due(json.loads(text)) for (text,) in nexmark.bids(records).select(F.to_json(F.struct("*"))).collect()]
    for name, share in {"q0": 1, "q1": 1, "q2": 1 / 123, "q14": 0.283, "q21": 0.95, "q22": 1}.items():
        rows = [json.loads(row.value, parse_float=Decimal) for row in getattr(nexmark, name)(records).collect()]
        assert rows == [row[name] for row in wanted if name in row], name
        assert 0 < len(rows) / len(wanted) == pytest.approx(share, abs=0.02), name


@pytest.mark.timeout(420)
@pytest.mark.parametrize(
    "name", exhaustive(("streams", "streams-eos", "flink", "flink-eos", "real-time"), but=["streams-eos"])
)
def test_a_kill_loses_nothing_and_what_it_repeats_is_counted(name: str, tmp_path: Path) -> None:
    if name.startswith("flink") and (lacks := flink.lacks()):
        pytest.skip(lacks)
    ran = call("lab", "bench", "--kill", "--contenders", name, "--output", tmp_path, *SHORT, *QUICK, timeout_s=400)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    report = json.loads((tmp_path / "bench-report.json").read_text())
    (result,) = report["results"]
    if name.startswith("streams"):
        assert "kafka_streams" in report["versions"]
    if name == "streams-eos":  # transactions are seen when they are committed, each 100 ms
        (rate,) = report["rounds"][0]["rates"]
        assert rate["due"]["p90_ms"] > 50
    assert (result["lost"], result["unexpected"]) == (0, 0)
    assert (result["duplicated"] > 0) == (name in ("streams", "flink"))
    assert result["gap_s"] > 0.5
