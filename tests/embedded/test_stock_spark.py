"""A checkpoint of another version of Spark goes on in each engine."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from exhaustive import exhaustive
from fraud_filter.checkpoint.entries import OffsetEntry
from running import Stage, payment, wait_until

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


def seen(stage: Stage) -> set[str]:
    found = (json.loads(record.value)["payment_id"] for record in stage.written()[stage.flagged])
    return set(found)


@pytest.mark.parametrize("mode", exhaustive(["micro-batch", "continuous", "real-time"], but=["real-time"]))
def test_a_checkpoint_of_spark_4_2_goes_on_in_each_engine(stage: Stage, flagged: list[str], mode: str) -> None:
    craft(stage, RECORDED.read_text().splitlines()[1])
    with stage.run(mode=mode) as program:
        wait_until(lambda: set(flagged[10:]) <= seen(stage), "all that is not committed is flagged", program)
        assert program.stop(30) == 0, program.tail()
    assert seen(stage) == set(flagged[10:])
