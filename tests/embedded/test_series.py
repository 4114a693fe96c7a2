"""The four modes serve the same series, and in continuous mode the offsets in them are those of the checkpoint."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import get_args

from fraud_filter.config import ModeName
from metrics_page import Page, Shape
from running import Stage, StageMaker, free_ports, payment, until, wait_until

MODES = get_args(ModeName)
#: A batch of real-time mode must end within the test.
SHORTEST = "5 seconds"
#: Spark measures the phases of a batch; continuous mode has none, and there is no other source of them.
OF_BATCHES_ONLY = {"fraud_filter_phase_duration_seconds"}


def committed_in_checkpoint(checkpoint: Path, topic: str) -> dict[str, float]:
    """Next offset to read by partition, as the newest committed entry has it."""
    newest = max(int(entry.name) for entry in (checkpoint / "commits").iterdir() if entry.name.isdigit())
    entry = (checkpoint / f"offsets/{newest}").read_text(encoding="utf-8").splitlines()[2]
    return {partition: float(offset) for partition, offset in json.loads(entry)[topic].items()}


def shape_of(stage: Stage, mode: ModeName) -> Shape:
    """What the mode serves, once the figures of a few payments are in it."""
    page = Page(*free_ports(1))
    with stage.run(mode=mode, metrics_port=str(page.port), real_time_duration=SHORTEST) as program:
        wait_until(lambda: page.values("fraud_filter_up") == {"": 1.0}, "the query runs", program)
        places = stage.send((f"c{n}", payment(f"p{n}", 5000 + n)) for n in range(40))
        sent = {str(number): max(at for n, at in places if n == number) + 1.0 for number in {n for n, _ in places}}
        wait_until(
            lambda: page.values("fraud_filter_committed_offset") == sent, "all that was sent is committed", program
        )
        wait_until(
            lambda: bool(page.values("fraud_filter_executor_peak_memory_bytes")), "an executor's heartbeat", program
        )
        assert page.values("fraud_filter_latest_offset") == sent, mode
        assert set(page.values("fraud_filter_consumer_lag_records").values()) == {0.0}, mode
        assert page.values("fraud_filter_input_records_total")[""] == len(places), mode
        assert page.values("fraud_filter_commits_total")[""] >= 1, mode
        assert time.time() - page.values("fraud_filter_last_progress_timestamp_seconds")[""] < 30, mode
        assert page.values("fraud_filter_healthy") == {"": 1.0}, mode
        if mode in ("continuous", "micro-batch"):
            assert committed_in_checkpoint(stage.directory / "checkpoint", stage.input) == sent, mode
        shape = page.shape()
        assert program.stop(30) == 0, program.tail()
    return shape


def test_the_same_series_move_in_every_mode(new_stage: StageMaker, tmp_path: Path) -> None:
    shapes = {mode: shape_of(new_stage(tmp_path / mode), mode) for mode in MODES}
    common = {
        mode: {name: series for name, series in shape.items() if name not in OF_BATCHES_ONLY}
        for mode, shape in shapes.items()
    }
    assert len(common["continuous"]) > 10
    for mode, shape in common.items():
        assert shape == common["continuous"], mode


def test_what_comes_after_a_pause_counts(new_stage: StageMaker, tmp_path: Path) -> None:
    """Spark tells of a trigger without data under the number of the batch that comes next."""
    stage, page = new_stage(tmp_path), Page(*free_ports(1))

    def counted() -> tuple[dict[str, float], set[float]]:
        rows, lags = (page.values(f"fraud_filter_{name}") for name in ("input_records_total", "consumer_lag_records"))
        return rows, set(lags.values())

    with stage.run(mode="micro-batch", metrics_port=str(page.port)) as program:
        wait_until(lambda: page.values("fraud_filter_up") == {"": 1.0}, "the query runs", program)
        for sent in (10, 20):
            time.sleep(12)  # Spark does so once at first, and then every 10 seconds
            stage.send((f"c{n}", payment(f"p{n}", 12)) for n in range(10))
            until(lambda sent=sent: counted() == ({"": sent}, {0.0}), f"{sent} are counted")  # type: ignore[misc]
            committed = [entry.name for entry in (stage.directory / "checkpoint/commits").iterdir()]
            assert page.values("fraud_filter_commits_total")[""] == sum(name.isdigit() for name in committed)
        assert program.stop(30) == 0, program.tail()
