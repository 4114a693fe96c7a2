from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from fraud_filter.config import ModeName, load
from fraud_filter.errors import UsageError
from fraud_filter.modes import MODES, Interval
from fraud_filter.query.preflight import check_inputs


def test_every_mode_that_can_be_set_is_in_the_table() -> None:
    assert tuple(MODES) == get_args(ModeName)


def test_triggers_follow_the_settings() -> None:
    settings = load(
        {"micro_batch_interval": "1 second", "continuous_interval": "2 seconds", "real_time_duration": "3 minutes"}
    )
    assert [mode.trigger(settings) for mode in MODES.values()] == [
        {"processingTime": "1 second"},
        {"processingTime": "1 second"},
        {"continuous": "2 seconds"},
        {"realTime": "3 minutes"},
    ]


def test_the_knobs_of_each_mode_reach_the_query_and_the_source() -> None:
    settings = load(
        {
            "async_progress_interval_ms": 250,
            "max_offsets_per_trigger": 9,
            "continuous_fetch_max_wait_ms": 3,
            "continuous_max_poll_records": 1,
        }
    )
    assert MODES["async-progress"].query_options(settings) == {
        "asyncProgressTrackingEnabled": "true",
        "asyncProgressTrackingCheckpointIntervalMs": "250",
    }
    assert MODES["micro-batch"].source_options(settings) == {"maxOffsetsPerTrigger": "9"}
    assert MODES["async-progress"].source_options(settings) == {"maxOffsetsPerTrigger": "9"}
    assert MODES["continuous"].source_options(settings) == {
        "kafka.fetch.max.wait.ms": "3",
        "kafka.max.poll.records": "1",
    }
    assert MODES["real-time"].source_options(settings) == {}


def test_only_the_modes_with_long_tasks_need_a_slot_a_partition() -> None:
    assert [name for name, mode in MODES.items() if mode.holds_tasks] == ["continuous", "real-time"]
    assert {mode.delivery_guarantee for mode in MODES.values()} == {"exactly one decision"}


@pytest.mark.parametrize(
    ("checkpoint", "conf", "light"),
    [
        ("checkpoint", {}, True),
        ("/data/checkpoint", {}, True),
        ("file:///data/checkpoint", {"spark.hadoop.fs.defaultFS": "hdfs://namenode"}, True),
        ("checkpoint", {"spark.hadoop.fs.defaultFS": "hdfs://namenode"}, False),
        ("hdfs://namenode/checkpoint", {}, False),
        ("s3a://bucket/checkpoint", {}, False),
    ],
)
def test_logs_on_a_local_disk_start_no_processes_while_records_stream(
    checkpoint: str, conf: dict[str, str], light: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    settings = load({"checkpoint": checkpoint, "spark_conf": conf})
    name_of_it = "spark.sql.streaming.checkpointFileManagerClass"
    changed = [name for name, mode in MODES.items() if name_of_it in mode.session_conf(settings)]
    assert changed == (["async-progress", "continuous", "real-time"] if light else [])


def test_a_default_file_system_of_hadoops_own_configuration_is_not_taken_for_local(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert not load({"checkpoint": "checkpoint"}).checkpoint_is_local
    assert load({"checkpoint": "file:/checkpoint"}).checkpoint_is_local


def test_a_made_up_mode_is_one_value(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is checked before a start asks the table alone."""
    fifth: Any = "fifth"
    interval = Interval("continuous_interval", least_s=2, advice="give more")
    made = replace(MODES["continuous"], name=fifth, interval=interval)
    monkeypatch.setitem(MODES, fifth, made)
    given = load({"source": "rate", "sink": "console", "checkpoint": str(tmp_path / "checkpoint")})
    settings = given.model_copy(update={"mode": fifth, "continuous_interval": "3 seconds"})
    inputs = check_inputs(settings)
    assert (inputs.mode, inputs.mode.commit_interval_s(settings)) == (made, 3)
    with pytest.raises(UsageError, match=r"setting continuous_interval .*'1 second' is too short; give more"):
        check_inputs(settings.model_copy(update={"continuous_interval": "1 second"}))
    monkeypatch.setitem(MODES, fifth, replace(made, sinks=frozenset({"console"})))
    with pytest.raises(UsageError, match="'memory' does not work in fifth mode"):
        check_inputs(settings.model_copy(update={"sink": "memory"}))


def test_the_time_between_commits_follows_the_settings() -> None:
    settings = load({"micro_batch_interval": "2 seconds", "async_progress_interval_ms": 500})
    assert {name: mode.commit_interval_s(settings) for name, mode in MODES.items()} == {
        "micro-batch": 2,
        "async-progress": 2.5,
        "continuous": 5,
        "real-time": 300,
    }
