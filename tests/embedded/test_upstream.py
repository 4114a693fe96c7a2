"""What docs/upstream.md tells Spark's developers is still so, as its commands show it."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from fraud_filter.home import HOME
from lab.harness.broker import Broker


def lines(case: str, broker: Broker) -> list[str]:
    """What the case prints."""
    argv = [sys.executable, f"{HOME}/tools/upstream.py", case, "--bootstrap-servers", broker.address]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=280)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout.splitlines()


def median_ms(line: str) -> int:
    return int(re.findall(r"p50_ms (\d+)", line)[0])


def test_a_master_with_a_secret_runs_a_program_of_who_has_none(broker: Broker) -> None:
    [line] = lines("rest", broker)
    assert "success True" in line
    assert line.endswith("state FINISHED")


def test_no_progress_in_continuous_mode(broker: Broker) -> None:
    micro_batch, continuous = lines("progress", broker)
    assert "lastProgress one" in micro_batch
    assert re.search(r"commits ([5-9]|\d\d+), recentProgress 0, lastProgress None$", continuous)


@pytest.mark.exhaustive
def test_other_modes_start_from_a_checkpoint_of_continuous_mode_only_with_metadata(broker: Broker) -> None:
    continuous, *others = lines("leave", broker)
    assert continuous == "continuous: metadata {''}"
    for mode, without, with_it in zip(("micro-batch", "real-time"), others[::2], others[1::2], strict=True):
        assert re.match(rf"{mode}: metadata none, new_commits 0, error .*watermarkTracker\(\)\S* is null", without)
        assert re.match(rf"{mode}: metadata {{.*}}, new_commits ([2-9]|\d\d+), error None", with_it)


@pytest.mark.exhaustive
@pytest.mark.timed
def test_in_continuous_mode_a_record_waits_for_the_fetch_after_it(broker: Broker) -> None:
    often, seldom, *without_wait = lines("fetch_wait", broker)
    assert all(re.search("ListOffsets_per_record [23]", line) for line in (often, seldom))
    assert 80 <= median_ms(often) < 300
    assert median_ms(seldom) >= 400
    assert all(median_ms(line) < 50 for line in without_wait)


@pytest.mark.exhaustive
@pytest.mark.timed
def test_the_shuffle_of_real_time_mode_holds_records_back(broker: Broker) -> None:
    by_default, one = map(median_ms, lines("shuffle_wait", broker))
    assert by_default >= 20
    assert one < by_default / 2


@pytest.mark.exhaustive
def test_a_progress_event_of_real_time_mode_has_no_latency(broker: Broker) -> None:
    [line] = lines("latency_metrics", broker)
    assert "durationMs {'addBatch'" in line
    assert line.endswith("named_latency none")
