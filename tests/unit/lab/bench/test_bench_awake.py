"""What keeps the cores awake: one busy process a core, which gives way to all others and ends with the block."""

from __future__ import annotations

import os

import psutil
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from lab.bench.run import cores_awake
from lab.harness.workspace import Workspace


@retry(retry=retry_if_exception_type(AssertionError), stop=stop_after_delay(30), wait=wait_fixed(0.1), reraise=True)
def assert_each_core_is_kept_busy(processes: list[psutil.Process]) -> None:
    assert {os.sched_getscheduler(process.pid) for process in processes} == {os.SCHED_IDLE}
    assert sorted(core for process in processes for core in os.sched_getaffinity(process.pid)) == cores()
    assert all(process.cpu_times().user > 0 for process in processes)


def cores() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def test_each_core_has_a_busy_process_that_gives_way_until_the_end() -> None:
    before = psutil.Process().children()
    with Workspace("awake-") as workspace:
        with cores_awake(workspace):
            busy = [process for process in psutil.Process().children() if process not in before]
            assert len(busy) == len(cores())
            assert_each_core_is_kept_busy(busy)
        assert not any(process.is_running() for process in busy)
