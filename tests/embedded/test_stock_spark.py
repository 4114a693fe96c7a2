"""A checkpoint of another version of Spark, or of another program, goes on in each engine."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from exhaustive import exhaustive
from fraud_filter.checkpoint.entries import OffsetEntry
from running import Stage, payment, until, wait_until

RECORDS = 30
#: The metadata line of an offset entry as Spark 4.2 wrote it.
RECORDED = Path(__file__).parents[1] / "data/checkpoints/micro-batch-killed/offsets/0"


def craft(stage: Stage, metadata: str = "") -> None:
    """A checkpoint of two batches, of which the second ended at offset 10 of partition 0."""
    checkpoint = stage.directory / "checkpoint"
    for log in ("offsets", "commits"):
        (checkpoint / log).mkdir(parents=True)
    for number, at in enumerate((0, 10)):
        ends = json.dumps({stage.input: {"0": at, "1": 0}})
        entry = OffsetEntry(number, 1, metadata, (ends,)).with_metadata(1)
        (checkpoint / f"offsets/{number}").write_bytes(entry.content)
        (checkpoint / f"commits/{number}").write_text('v1\n{"nextBatchWatermarkMs":0}')
    (checkpoint / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))


@pytest.fixture
def flagged(stage: Stage) -> list[str]:
    """Ids of payments to be flagged, in the order of their offsets in partition 0."""
    ids = [f"p{number}" for number in range(RECORDS)]
    places = stage.send(("card", payment(name, 6000)) for name in ids)
    assert places == [(0, offset) for offset in range(RECORDS)]  # where Kafka's hash of the key puts them
    return ids


@pytest.mark.parametrize("mode", exhaustive(["micro-batch", "continuous", "real-time"], but=["real-time"]))
def test_a_checkpoint_of_spark_4_2_goes_on_in_each_engine(stage: Stage, flagged: list[str], mode: str) -> None:
    craft(stage, RECORDED.read_text().splitlines()[1])
    with stage.run(mode=mode) as program:
        wait_until(lambda: set(flagged[10:]) <= stage.flagged_ids(), "all that is not committed is flagged", program)
        assert program.stop(30) == 0, program.tail()
    assert stage.flagged_ids() == set(flagged[10:])


def test_a_continuous_query_of_another_program_goes_on_as_a_query_of_yours(
    stage: Stage, spark: SparkSession, tmp_path: Path
) -> None:
    """In real-time mode: nothing is lost, and what was committed is not written again (docs/your-query.md)."""
    (tmp_path / "own.py").write_text("def transform(records):\n    return records.select('key', 'value')\n")
    ids = [f"p{number}" for number in range(2 * RECORDS)]
    checkpoint, broker = stage.directory / "checkpoint", {"kafka.bootstrap.servers": stage.address}

    stage.send((name, payment(name, 1)) for name in ids[:RECORDS])
    given = {"subscribe": stage.input, "startingOffsets": "earliest", "checkpointLocation": str(checkpoint)}
    read = spark.readStream.format("kafka").options(**broker, **given).load().select("key", "value")
    write = read.writeStream.format("kafka").options(**broker, **given).option("topic", stage.flagged)
    running = write.trigger(continuous="1 second").start()
    try:
        until(lambda: sum(stage.committed().values()) == RECORDS, "all are committed", 90)
    finally:
        running.stop()
    stage.send((name, payment(name, 1)) for name in ids[RECORDS:])
    with stage.run(mode="real-time", query=f"{tmp_path}/own.py:transform", rejected_topic="") as program:
        wait_until(lambda: set(ids) <= stage.flagged_ids(), "the others are written", program)
        assert program.stop(30) == 0, program.tail()
    assert len(stage.written()[stage.flagged]) == len(ids)
