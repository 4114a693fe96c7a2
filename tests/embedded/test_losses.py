"""Retention overtakes a running query that may go on without what is gone: it is counted, told and audited."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, get_args

import pytest
from kafka.structs import TopicPartition

from faults import events, java_of, metrics, suspend
from fraud_filter.config import ModeName
from running import Stage, free_ports, payment, wait_until

MODES = get_args(ModeName)
QUICK = {"restart_backoff_s": "0.2", "continuous_interval": "1 second", "real_time_duration": "5 seconds"}
LOST = "fraud_filter_lost_records_total"


def send(stage: Stage, name: str, count: int) -> list[tuple[int, int]]:
    """Payments that are to be flagged."""
    return stage.send((f"{name}-{n}", payment(f"{name}-{n}", 6000)) for n in range(count))


def decided(stage: Stage) -> set[str]:
    return {json.loads(record.value)["payment_id"].partition("-")[0] for record in stage.written()[stage.flagged]}


def committed(port: int) -> float:
    return sum(value for name, value in metrics(port, "partition").items() if "committed_offset/" in name)


def audit(stage: Stage) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "fraud_filter", "audit", "--settle", "0"]
    env = {**os.environ, **stage.environment()}
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("mode", MODES)
def test_what_retention_takes_from_a_running_query_is_counted_once_and_audited(
    stage: Stage, admin: Any, mode: str
) -> None:
    (port,) = free_ports(1)
    send(stage, "first", 20)
    with stage.run(mode=mode, metrics_port=str(port), fail_on_data_loss="false", **QUICK) as program:
        wait_until(lambda: "first" in decided(stage) and committed(port) == 20, "all is committed", program)
        suspend(java_of(program))
        unread = send(stage, "unread", 40)
        ends = {number: max(offset for part, offset in unread if part == number) + 1 for number in (0, 1)}
        admin.delete_records({TopicPartition(stage.input, number): end for number, end in ends.items()})
        lost = {number: [offset for part, offset in unread if part == number] for number in (0, 1)}
        wait_until(lambda: metrics(port)[LOST] == len(unread), "the loss is counted while the query hangs", program)
        told = "\n".join(events(program, "data_lost"))
        for number, offsets in lost.items():
            assert f"partition {number} offsets {offsets[0]} to {offsets[-1]}" in told
        java_of(program).resume()
        send(stage, "last", 20)
        wait_until(lambda: "last" in decided(stage) and committed(port) == 80, "the rest is committed", program)
        java_of(program).kill()
        wait_until(lambda: metrics(port)["fraud_filter_restarts_total/java-gone"] == 1, "a restart", program)
        wait_until(lambda: metrics(port)["fraud_filter_up"] == 1, "the query runs again", program)
        assert metrics(port)[LOST] == len(unread)
        assert program.stop(30) == 0, program.tail()
    assert "unread" not in decided(stage)
    done = audit(stage)
    assert done.returncode == 1, done.stdout + done.stderr
    for number, offsets in lost.items():
        assert f"partition {number} offsets {offsets[0]} to {offsets[-1]}" in done.stdout


def test_the_audit_tells_what_was_removed_after_the_last_commit_of_a_filter_that_is_down(
    stage: Stage, admin: Any
) -> None:
    (port,) = free_ports(1)
    send(stage, "first", 20)
    with stage.run(mode="micro-batch", metrics_port=str(port), **QUICK) as program:
        wait_until(lambda: "first" in decided(stage) and committed(port) == 20, "all is committed", program)
        assert program.stop(30) == 0, program.tail()
    assert audit(stage).returncode == 0
    unread = [offset for part, offset in send(stage, "unread", 20) if part == 0]
    admin.delete_records({TopicPartition(stage.input, 0): unread[-1] + 1})
    done = audit(stage)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"partition 0 offsets {unread[0]} to {unread[-1]}" in done.stdout
