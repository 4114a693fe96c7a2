"""A program that holds the lock of a checkpoint as the filter does, with a worker in Java's place that is hard to end.

The worker writes `NANOSECONDS NAME` lines into a file of all holders: lines of two that mix are two at work at once.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import psutil

from fraud_filter.config import load
from fraud_filter.errors import FraudFilterError
from fraud_filter.lock.group_lock import GroupLock
from lab.harness.processes import Child

_WORK = 'read go; while :; do echo "$(date +%s%N) $1" >>"$2"; sleep 0.01; done'


@dataclass(frozen=True)
class _Files:
    pid: int
    qualified: str


def holder(name: str, location: str, directory: Path, env: dict[str, str], how: str = "hold") -> Child:
    """The program, not started; its log says `held`, `lost …` or why it was refused. As a `standby` it waits."""
    argv = [sys.executable, __file__, name, location, str(directory / "work"), how]
    return Child(name, argv, log=directory / f"{name}.log", env={"PYTHONUNBUFFERED": "1", **env})


def said(program: Child) -> str:
    return "\n".join(program.tail(20))


def work(directory: Path) -> list[tuple[int, str]]:
    """When whose worker worked, in the order of the file."""
    file = directory / "work"
    lines = file.read_text().splitlines() if file.exists() else []
    return [(int(when), name) for when, name in (line.split() for line in lines)]


def turns(directory: Path) -> list[str]:
    """The names, each as often as its work begins after another's."""
    names = [name for _, name in work(directory)]
    return [name for number, name in enumerate(names) if number == 0 or names[number - 1] != name]


def worker_of(program: Child) -> psutil.Process:
    """The worker, which outlives the program."""
    return next(child for child in psutil.Process(program.pid).children() if child.name() == "sh")


def main(name: str, location: str, file: str, how: str) -> int:
    settings = load({"checkpoint": location})
    shared = Path(location) if location.startswith("/") else None  # as `checkpoint_lock` finds it on NFS
    lock = GroupLock(settings, "filter", "setting checkpoint", shared)
    argv = ["sh", "-c", _WORK, "sh", name, file]
    worker = subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True)
    files = cast(Any, _Files(worker.pid, location))
    try:
        while how == "standby" and not lock.take(files):
            time.sleep(lock.look_s)
        lock.hold(files)
        assert worker.stdin
        worker.stdin.write(b"\n")
        worker.stdin.flush()
        print("held", flush=True)  # noqa: T201
        while worker.poll() is None:
            time.sleep(0.05)
        print(f"lost: {lock.lost}", flush=True)  # noqa: T201
    except FraudFilterError as error:
        print(error, flush=True)  # noqa: T201
        return error.exit_code
    finally:
        worker.kill()
        worker.wait()
        lock.close()
    return 0


if __name__ == "__main__":
    import signal

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sys.exit(main(*sys.argv[1:]))
