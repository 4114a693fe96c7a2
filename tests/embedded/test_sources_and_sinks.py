"""The rate and socket sources, the console and memory sinks, in each mode that takes them, and JSON with schema ids."""

from __future__ import annotations

import json
import socketserver
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from exhaustive import exhaustive
from fraud_filter.audit.run import audit
from fraud_filter.config import Settings, load
from fraud_filter.errors import UsageError
from fraud_filter.generator.payments import MadePayments, Shares
from fraud_filter.generator.sender import Sender
from fraud_filter.generator.source import Steady
from fraud_filter.modes import MODES
from fraud_filter.oracle.payments import PaymentReader
from fraud_filter.query import sinks
from fraud_filter.query.preflight import check_inputs
from fraud_filter.query.sources import made_up
from fraud_filter.supervisor.failures import explain_failure
from fraud_filter.supervisor.query_run import prepare, start
from hostile_records import SCHEMA
from lab.harness.processes import Child
from running import Stage, payment, until, wait_until

RATE_MODES = [name for name, mode in MODES.items() if "rate" in mode.sources and "console" in mode.sinks]
SOCKET_MODES = [name for name, mode in MODES.items() if "socket" in mode.sources and "memory" in mode.sinks]


def _run(directory: Path, mode: str, sink: str) -> Child:
    argv = [
        sys.executable, "-m", "fraud_filter", "run", "--mode", mode, "--source", "rate", "--sink", sink,
        "--source-options", '{"rowsPerSecond": "20"}', "--spark-master", "local[4]",
        "--continuous-interval", "1 second",
        "--checkpoint", str(directory / "checkpoint"), "--metrics-port", "0",
        "--stop-timeout-s", "15",  # what hangs at the stop is in the log before the test gives up
    ]  # fmt: skip
    return Child("the filter", argv, log=directory / "run.log")


@pytest.mark.parametrize("mode", exhaustive(RATE_MODES, but=["continuous"]))
def test_the_console_shows_flagged_payments_of_the_rate_source(tmp_path: Path, mode: str) -> None:
    with _run(tmp_path, mode, "console") as program:

        def shown() -> list[str]:
            return [line for line in program.tail(500) if line.startswith("|payments.flagged")]

        wait_until(lambda: len(shown()) >= 5, "five flagged payments on the console", program)
        assert any(line.startswith("Batch: ") for line in program.tail(500))
        assert program.stop(30) == 0, program.tail()
    topic, _key, value, headers, *_ = (cell.strip() for cell in shown()[0].strip("|").split("|"))
    assert topic == "payments.flagged"
    assert json.loads(value)["rules"]
    assert "source.topic=rate" in headers


def test_records_of_the_rate_source_have_every_field(spark: Any) -> None:
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    made = F.to_json(F.struct(*(made_up(field.name, field.kind).alias(field.name) for field in SCHEMA.fields)))
    rows = spark.range(20).select(F.col("id").alias("value"), F.current_timestamp().alias("timestamp")).select(made)
    for reading in (PaymentReader(SCHEMA).read(row[0].encode()) for row in rows.collect()):
        assert reading.reason is None
        assert None not in reading.fields


@pytest.mark.parametrize("mode", RATE_MODES)
def test_the_memory_sink_fills_a_table(spark: Any, tmp_path: Path, mode: str) -> None:
    """It can be read only where the query runs."""
    # One long task of continuous mode leaves a slot of the session for the look at the table.
    options = {"rowsPerSecond": "20", "numPartitions": "1"}
    rate = {"source": "rate", "source_options": options, "continuous_interval": "1 second"}
    settings = load({"mode": mode, "sink": "memory", "checkpoint": str(tmp_path / "checkpoint"), **rate})
    assert all(where == ("payments.flagged", "source.topic=rate") for where in _decided(spark, settings, 5))


def _decided(spark: Any, settings: Settings, count: int) -> Counter[tuple[str, str]]:
    """Runs the query until so many decisions are in the memory sink's table: how many of which topic and source."""
    inputs = check_inputs(settings)
    query = start(sinks.write(prepare(spark, inputs, settings, "").decisions, inputs.mode, settings, 0), settings)
    try:
        table = spark.table("fraud_filter")
        until(lambda: table.count() >= count or not query.isActive, f"{count} decisions in the table", 90)
        assert query.exception() is None
        return Counter((row["topic"], row["headers"][0]) for row in table.collect())
    finally:
        query.stop()
        spark.catalog.dropTempView("fraud_filter")


PAYMENTS = [
    {
        "payment_id": f"p-{number}", "card_id": "card-1", "amount": 99_999.0, "currency": "EUR",
        "country": "DE", "merchant": "m-1", "created_at": "2026-03-01T12:00:00Z",
    }
    for number in range(20)
]  # fmt: skip


class _Lines(socketserver.StreamRequestHandler):
    """What `nc -lk` does with these lines: each connection gets all of them, and stays open."""

    def handle(self) -> None:
        for one in PAYMENTS:
            self.wfile.write(json.dumps(one).encode() + b"\n")
        self.wfile.write(b"no JSON\n")
        self.rfile.read()


@pytest.fixture
def tcp_server() -> Iterator[str]:
    """The address of a TCP server that sends twenty payments and a line that is none."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Lines) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize("mode", SOCKET_MODES)
def test_lines_of_a_socket_are_decided(spark: Any, tmp_path: Path, tcp_server: str, mode: str) -> None:
    host, _, port = tcp_server.rpartition(":")
    options = {"host": host, "port": port}
    here = {"source": "socket", "source_options": options, "continuous_interval": "1 second"}
    settings = load({"mode": mode, "sink": "memory", "checkpoint": str(tmp_path / "checkpoint"), **here})
    of = "source.topic=socket"
    assert _decided(spark, settings, 21) == {("payments.flagged", of): 20, ("payments.rejected", of): 1}


def _format(directory: Path, mode: str, name: str, options: dict[str, Any], sink: str = "memory") -> dict[str, Any]:
    intervals = {"continuous_interval": "1 second", "real_time_duration": "5 seconds"}
    given = {"source": name, "source_options": {k: str(v) for k, v in options.items()}}
    return {"mode": mode, "sink": sink, "checkpoint": str(directory / "checkpoint"), **intervals, **given}


@pytest.mark.parametrize("name", ["text", "json"])
def test_files_of_any_format_are_decided_in_micro_batch_mode(spark: Any, tmp_path: Path, name: str) -> None:
    arriving = tmp_path / "in"
    arriving.mkdir()
    (arriving / "some.jsonl").write_text("\n".join(map(json.dumps, PAYMENTS)) + "\nno JSON\n")
    settings = load(_format(tmp_path, "micro-batch", name, {"path": arriving}))
    of = f"source.topic={name}"
    assert _decided(spark, settings, 21) == {("payments.flagged", of): 20, ("payments.rejected", of): 1}


@pytest.mark.parametrize(
    ("mode", "name", "said"),
    [
        ("async-progress", "text", "'format' does not work in async-progress mode"),
        (
            "continuous",
            "text",
            r"source .*'text' does not work in continuous mode; it works in micro-batch mode",
        ),
        ("real-time", "text", r"source .*'text' does not work in real-time mode; it works in micro-batch mode"),
        ("continuous", "rate-micro-batch", "rate-micro-batch does not support continuous processing"),
        ("real-time", "rate-micro-batch", "input stream .*RatePerMicroBatch.* is not supported in Real-time Mode"),
        ("micro-batch", "no-such", r"source .*'no-such' can't be read: .*check its name and source_options"),
    ],
)
def test_a_format_that_a_mode_can_not_run_is_refused_in_words(
    spark: Any, tmp_path: Path, mode: str, name: str, said: str
) -> None:
    options = {"rowsPerBatch": 5} if name == "rate-micro-batch" else {"path": tmp_path}
    settings = load(_format(tmp_path, mode, name, options, "kafka" if mode == "async-progress" else "console"))

    def run() -> None:
        inputs = check_inputs(settings)
        query = start(sinks.write(prepare(spark, inputs, settings, "").decisions, inputs.mode, settings, 0), settings)
        until(lambda: not query.isActive, "the refusal", 60)
        raise explain_failure(query.exception(), settings)

    with pytest.raises(UsageError, match=said):
        run()


# -- JSON behind Schema Registry's prefix, from the generator to the audit


def test_json_behind_a_schema_id_is_decided(spark: Any, stage: Stage) -> None:
    own = {"record_format": "json-registry", "checkpoint": str(stage.directory / "checkpoint")}
    settings = stage.settings().model_copy(update=own)
    made = MadePayments.for_settings(settings, Steady(500), seed=1, shares=Shares(flagged=0.3, malformed=0.2))
    sent = Sender(settings, made, count=200).run()
    bare = [payment("bare", 6000), b"\0\0", b"\1\0\0\0\0" + payment("other", 6000)]
    stage.send([("card", value) for value in bare])
    expected = (sent.flagged or 0) + sent.malformed + len(bare)
    inputs = check_inputs(settings)
    query = start(sinks.write(prepare(spark, inputs, settings, "").decisions, inputs.mode, settings, 0), settings)
    try:
        until(lambda: sum(map(len, stage.written().values())) >= expected or not query.isActive, "all is decided", 90)
        assert query.exception() is None
    finally:
        query.stop()
    result = audit(settings)
    assert result.ok
    assert (result.expected, result.rejected) == (sent.flagged, sent.malformed + len(bare))
    assert result.reject_reasons["no-schema-id"] == len(bare)
