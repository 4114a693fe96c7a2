"""The checkpoint's file system refuses for a while at a restart: the filter waits for it, and loses nothing."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from faults import Decisions, Feed, events, java_of
from fraud_filter.audit.run import audit
from lab.harness.processes import Child, free_ports
from running import PROGRAM, Stage, wait_until

#: A small file system of the filter's own, in a mount namespace: anybody may make one who may make a user namespace.
_ON_A_SMALL_DISK = 'mount -t tmpfs -o size=1m tmpfs "$1" && shift && exec "$@"'


def run_on_a_small_disk(stage: Stage, **settings: str) -> Child:
    """`fraud-filter run` with its checkpoint on a file system of 1 MiB, which `disk_of` names from outside."""
    checkpoint = stage.directory / "checkpoint"
    checkpoint.mkdir()
    namespace = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    argv = [*namespace, "sh", "-c", _ON_A_SMALL_DISK, "sh", str(checkpoint), *PROGRAM, "run"]
    return Child("the filter", argv, log=stage.directory / "run.log", env=stage.environment(**settings))


def fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


QUICK = {"continuous_interval": "1 second", "restart_backoff_s": "0.2"}


def has_waited(program: Child) -> bool:
    return any("reason=checkpoint-away" in line for line in events(program, "restarting"))


def require_all(stage: Stage, program: Child, feed: Feed, decisions: Decisions) -> None:
    """Stops feed and filter; nothing may be lost."""
    ends = decisions.ends()
    wait_until(lambda: decisions.fresh(ends), "fresh decisions", program)
    feed.stop()
    ends = {number: end - 2 for number, end in decisions.ends().items()}
    wait_until(lambda: decisions.fresh(ends), "all decided", program)
    decisions.close()
    assert program.stop(30) == 0, program.tail()
    result = audit(stage.settings())
    assert (result.lost, result.unexpected) == (0, 0), result


def test_a_disk_that_is_full_at_a_restart_is_waited_for(stage: Stage) -> None:
    """In continuous mode: its checkpoint needs a repair after a kill, and that needs room."""
    (port,) = free_ports(1)
    with run_on_a_small_disk(stage, mode="continuous", metrics_port=str(port), **QUICK) as program, Feed(stage) as feed:
        decisions = Decisions(stage)
        wait_until(lambda: decisions.fresh({0: 5, 1: 5}), "decisions", program)
        disk = Path(f"/proc/{program.pid}/root{stage.directory}/checkpoint")
        wait_until(lambda: len(list(disk.glob("commits/[0-9]*"))) > 1, "two commits", program)
        java = java_of(program)
        java.suspend()
        newest = max((disk / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
        newest.unlink()  # as a kill leaves it between the writes of the two logs
        newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
        fill(disk)
        java.kill()
        wait_until(lambda: has_waited(program), "a restart for the sake of the checkpoint", program)
        (disk / "filler").unlink()
        require_all(stage, program, feed, decisions)
