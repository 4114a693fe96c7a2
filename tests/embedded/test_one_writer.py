"""Two filters and one checkpoint whose lock file, and later whose directory, is removed by hand."""

from __future__ import annotations

import shutil

import pytest

from faults import events, metrics
from fraud_filter.lock.checkpoint_lock import NAME
from lab.harness.processes import Child, free_ports
from running import START_S, Stage, payment, until, wait_until


def send(stage: Stage, name: str) -> list[str]:
    """Payments that are to be flagged; returns their ids."""
    ids = [f"{name}-{number}" for number in range(20)]
    stage.send((each, payment(each, 9000)) for each in ids)
    return ids


def decided(stage: Stage) -> list[str]:
    return sorted(record.key.decode() for record in stage.written()[stage.flagged])


def restarts(program: Child, reason: str) -> bool:
    return any(f"reason={reason} " in line for line in events(program, "restarting"))


@pytest.mark.timeout(600)
def test_who_removes_the_lock_gets_no_second_writer_and_a_removed_checkpoint_is_not_healthy(stage: Stage) -> None:
    ports = free_ports(2)
    first, second = (stage.run(metrics_port=str(port), restart_backoff_s="0.2") for port in ports)
    checkpoint = stage.directory / "checkpoint"
    with first:
        expected = send(stage, "before")
        wait_until(lambda: decided(stage) == sorted(expected), "all decided", first, START_S)
        commits = checkpoint / "commits"
        wait_until(lambda: any(each.name.isdigit() for each in commits.iterdir()), "a commit", first)
        (checkpoint / NAME).unlink()
        with second:
            wait_until(lambda: restarts(first, "lock-lost"), "the first one notices", first)
            both = (first, second)
            until(lambda: any(not each.is_alive for each in both), "one of them ends", START_S)
            (left,) = (each for each in both if each.is_alive)
            (ended,) = (each for each in both if not each.is_alive)
            assert ended.returncode == 2, ended.tail()
            assert "another filter" in "\n".join(ended.tail())
            expected += send(stage, "after")
            wait_until(lambda: len(decided(stage)) >= len(expected), "all decided", left, START_S)
            assert decided(stage) == sorted(expected), "one was decided twice"

            def runs() -> float:
                return metrics(ports[both.index(left)])["fraud_filter_up"]

            wait_until(lambda: runs() == 1, "it runs", left, START_S)
            shutil.rmtree(checkpoint)
            wait_until(lambda: restarts(left, "checkpoint-away"), "it waits for its checkpoint", left)
            wait_until(lambda: runs() == 0, "it says that nothing runs", left)
