"""The lock of a checkpoint on no local disk: one holder at a time, whatever is killed, stopped or cut off."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest

from fraud_filter.lock.checkpoint_lock import ID_FILE
from lab.harness.broker import Broker
from lab.harness.processes import Child
from lock_holder import holder, said, turns, work, worker_of
from running import until

#: The shortest that brokers take by default.
LOCK_S = 6
Start = Callable[..., Child]


@pytest.fixture
def start(broker: Broker, tmp_path: Path) -> Iterator[Start]:
    """Starts a holder of the test's own checkpoint."""
    location = f"hdfs://names:8020/{uuid.uuid4().hex}"
    env = {"KAFKA_BOOTSTRAP_SERVERS": broker.address, "FRAUD_CHECKPOINT_LOCK_TIMEOUT_S": str(LOCK_S)}
    with ExitStack() as ending:
        workers: list[psutil.Process] = []

        def begin(name: str, how: str = "hold", at: str = location) -> Child:
            program = holder(name, at, tmp_path, env, how).start()
            ending.callback(program.stop, 5)
            until(lambda: not program.is_alive or bool(psutil.Process(program.pid).children()), f"worker of {name}")
            with suppress(StopIteration, psutil.NoSuchProcess):
                workers.append(worker_of(program))
            return program

        yield begin
        for worker in workers:
            with suppress(psutil.NoSuchProcess):
                worker.kill()


def await_held(program: Child) -> float:
    """Seconds until it held the lock."""
    began = time.monotonic()
    until(lambda: "held" in said(program) or not program.is_alive, "held")
    assert "held" in said(program), said(program)
    return time.monotonic() - began


@pytest.mark.timed
def test_who_is_refused_does_not_disturb_the_holder_who_leaves_at_once(start: Start, tmp_path: Path) -> None:
    first = start("first")
    await_held(first)
    for number in range(2):
        refused = start(f"refused{number}")
        assert refused.wait(60) == 2
        assert f"another filter (process {first.pid} on " in said(refused)
    time.sleep(LOCK_S)  # longer than it holds without a word of the brokers
    assert first.is_alive
    assert first.stop(20) == 0
    second = start("second")
    assert await_held(second) < LOCK_S / 2
    until(lambda: turns(tmp_path) == ["first", "second"], "both have worked, one after the other")


def test_of_two_standbys_one_holds_it_when_the_holder_is_killed(start: Start, tmp_path: Path) -> None:
    """The guard ends what the dead program can't: its worker ends before the next begins."""
    first = start("first")
    await_held(first)
    standbys = [start(name, "standby") for name in ("second", "third")]
    time.sleep(LOCK_S)  # longer than it holds without a word of the brokers
    assert turns(tmp_path) == ["first"]
    os.kill(first.pid or 0, signal.SIGKILL)
    began = time.monotonic()
    until(lambda: len(turns(tmp_path)) == 2, "the work of one of them")
    print(f"measured takeover by a standby: {time.monotonic() - began:.1f} s")  # noqa: T201
    until(lambda: any("held" in said(program) for program in standbys), "its word on it")
    (held,) = [program for program in standbys if "held" in said(program)]
    require_a_gap(tmp_path, held.name)
    (other,) = [program for program in standbys if program is not held]
    assert held.stop(20) == 0
    await_held(other)
    until(lambda: turns(tmp_path)[-1] == other.name, "the work of the other")


def test_a_program_that_is_stopped_has_lost_it_when_it_goes_on(start: Start, tmp_path: Path) -> None:
    first = start("first")
    await_held(first)
    os.kill(first.pid or 0, signal.SIGSTOP)
    second = start("second")
    await_held(second)
    until(lambda: turns(tmp_path)[-1] == "second", "its work")
    os.kill(first.pid or 0, signal.SIGCONT)
    assert first.wait(60) == 0
    assert "lost: the lock of the checkpoint" in said(first)
    assert second.is_alive
    require_a_gap(tmp_path, "second")


@pytest.mark.exhaustive
def test_all_of_a_machine_that_stands_still_has_lost_it_when_it_goes_on(start: Start, tmp_path: Path) -> None:
    """As a container that is paused: what was to watch the worker stood still, too, and ends it first thing."""
    first = start("first")
    await_held(first)
    family = [psutil.Process(first.pid), *psutil.Process(first.pid).children(recursive=True)]
    for process in family:
        process.suspend()
    second = start("second")
    await_held(second)
    went_on = time.time_ns()
    for process in reversed(family):
        with suppress(psutil.NoSuchProcess):  # what goes on first ends the rest
            process.resume()
    assert first.wait(60) == 0
    late = [when - went_on for when, name in work(tmp_path) if name == "first" and when > went_on]
    print(f"measured work after a standstill: {max(late, default=0) / 1e6:.0f} ms")  # noqa: T201
    assert max(late, default=0) < 5e9  # what remains open: see docs/standby.md


@pytest.mark.timed
@pytest.mark.parametrize(("seconds", "lives"), [(2, True), (LOCK_S, False)])
def test_brokers_that_are_away_for_long_end_the_work(
    broker: Broker, start: Start, tmp_path: Path, seconds: float, lives: bool
) -> None:
    first = start("first")
    await_held(first)
    worker = worker_of(first)
    os.kill(broker.child.pid or 0, signal.SIGSTOP)
    try:
        time.sleep(seconds)
        assert (worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE) == lives
    finally:
        os.kill(broker.child.pid or 0, signal.SIGCONT)
    if lives:
        before = len(work(tmp_path))
        time.sleep(LOCK_S)
        assert len(work(tmp_path)) > before
    else:
        assert first.wait(60) == 0
        assert "no Kafka broker has confirmed it for 4 s" in said(first)


def require_a_gap(directory: Path, following: str) -> None:
    """Nobody works while another may."""
    until(lambda: turns(directory) == ["first", following], "both have worked, one after the other")
    ends = max(when for when, name in work(directory) if name == "first")
    begins = min(when for when, name in work(directory) if name == following)
    print(f"measured gap between two holders: {(begins - ends) / 1e9:.1f} s")  # noqa: T201
    assert begins > ends


def test_a_shared_directory_has_one_lock_wherever_it_is_mounted_and_loses_it_with_its_id(
    start: Start, tmp_path: Path
) -> None:
    run, mounted_elsewhere = tmp_path / "run", tmp_path / "mounted-elsewhere"
    run.mkdir()
    mounted_elsewhere.symlink_to(run)
    first = start("first", at=str(run))
    await_held(first)
    second = start("second", at=str(mounted_elsewhere))
    assert second.wait(60) == 2, said(second)
    assert "another filter" in said(second)
    (run / ID_FILE).unlink()
    until(lambda: "lost: " in said(first), "the loss")
    assert "was removed or replaced" in said(first)
    assert turns(tmp_path) == ["first"]
