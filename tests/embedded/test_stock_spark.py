"""Checkpoints of another version of Spark, and what Spark's real-time mode itself refuses of them."""

from __future__ import annotations

import json
import sys
import uuid
from pathlib import Path

import pytest

from exhaustive import exhaustive
from fraud_filter.checkpoint.entries import OffsetEntry
from lab.harness.processes import Child
from running import Stage, payment, wait_until

#: The filter without its repair: Spark gets the checkpoint as it is.
WITHOUT_REPAIR = """
from fraud_filter.supervisor import start_position
from fraud_filter.cli.main import main
assert start_position.prepare_checkpoint
start_position.prepare_checkpoint = lambda *_: None
main()
"""
RECORDS = 30
#: The metadata line of an offset entry as Spark 4.2 wrote it.
RECORDED = Path(__file__).parents[1] / "data/checkpoints/micro-batch-killed/offsets/0"
#: The same without the setting by which real-time mode takes a commit log of version 1.
WITHOUT_V1 = """
from dataclasses import replace
from fraud_filter import modes
real_time = modes.MODES["real-time"]
allowed = real_time.session_conf
without = lambda settings: {k: v for k, v in allowed(settings).items() if k != modes.V1_CHECKPOINTS}
modes.MODES["real-time"] = replace(real_time, session_conf=without)
"""


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


def without_repair(stage: Stage, mode: str, before: str = "") -> Child:
    argv = [sys.executable, "-c", before + WITHOUT_REPAIR, "run"]
    env = stage.environment(mode=mode, max_restarts="0")
    return Child("the filter without repair", argv, log=stage.directory / "stock.log", env=env)


def seen(stage: Stage) -> set[str]:
    found = (json.loads(record.value)["payment_id"] for record in stage.written()[stage.flagged])
    return set(found)


@pytest.mark.exhaustive
def test_spark_s_real_time_mode_refuses_commits_of_version_1(stage: Stage, flagged: list[str]) -> None:  # noqa: ARG001
    """As soon as it takes them from a query without state, the filter needs no setting for it."""
    craft(stage)
    with without_repair(stage, "real-time", WITHOUT_V1) as program:
        assert program.wait(180) in (2, 4), program.tail()
    assert "CHECKPOINT_FORMAT_V1_NOT_SUPPORTED" in (stage.directory / "stock.log").read_text()


@pytest.mark.parametrize("mode", exhaustive(["micro-batch", "continuous", "real-time"], but=["real-time"]))
def test_a_checkpoint_of_spark_4_2_goes_on_in_each_engine(stage: Stage, flagged: list[str], mode: str) -> None:
    craft(stage, RECORDED.read_text().splitlines()[1])
    with stage.run(mode=mode) as program:
        wait_until(lambda: set(flagged[10:]) <= seen(stage), "all that is not committed is flagged", program)
        assert program.stop(30) == 0, program.tail()
    assert seen(stage) == set(flagged[10:])
