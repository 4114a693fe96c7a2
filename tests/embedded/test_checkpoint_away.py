"""The checkpoint's file system refuses for a while at a restart: the filter waits for it, and loses nothing."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from faults import Decisions, Feed, events, java_of
from filter_under_load import require_features, rules_with_features
from fraud_filter.audit.result import AuditResult
from fraud_filter.audit.run import audit
from lab.harness.processes import Child, free_ports
from running import Stage, wait_until

#: A small file system of the filter's own, in a mount namespace: anybody may make one who may make a user namespace.
_ON_A_SMALL_DISK = 'mount -t tmpfs -o size=1m tmpfs "$1" && shift && exec "$@"'


def run_on_a_small_disk(stage: Stage, **settings: str) -> Child:
    """`fraud-filter run` with its checkpoint on a file system of 1 MiB, which `disk_of` names from outside."""
    checkpoint = stage.directory / "checkpoint"
    checkpoint.mkdir()
    namespace = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    argv = [
        *namespace,
        "sh",
        "-c",
        _ON_A_SMALL_DISK,
        "sh",
        str(checkpoint),
        sys.executable,
        "-m",
        "fraud_filter",
        "run",
    ]
    return Child("the filter", argv, log=stage.directory / "run.log", env=stage.environment(**settings))


def fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


QUICK = {"continuous_interval": "1 second", "restart_backoff_s": "0.2"}


def has_waited(program: Child) -> bool:
    return any("reason=checkpoint-away" in line for line in events(program, "restarting"))


def require_all(
    stage: Stage,
    program: Child,
    feed: Feed,
    decisions: Decisions,
    begin: dict[int, int] | None = None,
    rules: Path | None = None,
) -> AuditResult:
    """Stops feed and filter; nothing may be lost from `begin` on."""
    ends = decisions.ends()
    wait_until(lambda: decisions.fresh(ends), "fresh decisions", program)
    feed.stop()
    ends = {number: end - 2 for number, end in decisions.ends().items()}
    wait_until(lambda: decisions.fresh(ends), "all decided", program)
    decisions.close()
    assert program.stop(30) == 0, program.tail()
    result = audit(stage.settings().model_copy(update={"rules": rules} if rules else {}), start=begin)
    assert (result.lost, result.unexpected) == (0, 0), result
    return result


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


@pytest.mark.exhaustive  # test_velocity_run kills a filter with a state, and the disk is full above
def test_a_disk_that_fills_up_under_a_state_costs_no_feature(stage: Stage) -> None:
    """The state of features is written to the checkpoint at each batch end."""
    rules = rules_with_features(stage)
    own = {"mode": "real-time", "real_time_duration": "5 seconds", "rules": str(rules), "max_restarts": "100"}
    with run_on_a_small_disk(stage, **own, **QUICK) as program, Feed(stage) as feed:
        decisions = Decisions(stage)
        wait_until(lambda: decisions.fresh({0: 5, 1: 5}), "decisions", program, 240)
        disk = Path(f"/proc/{program.pid}/root{stage.directory}/checkpoint")
        wait_until(lambda: len(list(disk.glob("commits/[0-9]*"))) > 1, "two commits", program, 240)
        fill(disk)
        wait_until(lambda: bool(events(program, "restarting")), "a restart", program, 240)
        (disk / "filler").unlink()
        require_features(require_all(stage, program, feed, decisions, rules=rules))


@pytest.mark.exhaustive  # test_one_writer removes it, and its filter waits
def test_a_checkpoint_that_is_not_there_at_a_restart_is_no_new_one(stage: Stage) -> None:
    """As of a volume that is not mounted: the query would begin at the latest offsets once more."""
    (port,) = free_ports(1)
    checkpoint, away = stage.directory / "checkpoint", stage.directory / "away"
    start = {"mode": "real-time", "metrics_port": str(port), "starting_offsets": "latest"}
    with stage.run(**start, **QUICK) as program, Feed(stage) as feed:
        decisions = Decisions(stage)
        wait_until(lambda: len(decisions.newest()) == 2, "decisions", program)
        java_of(program).suspend()
        checkpoint.rename(away)
        java_of(program).kill()
        wait_until(lambda: has_waited(program), "a restart for the sake of the checkpoint", program)
        away.rename(checkpoint)
        kept = json.loads((checkpoint / "fraud-filter/input.json").read_text())
        begin = {int(number): offset for number, offset in kept["begin"].items()}
        require_all(stage, program, feed, decisions, begin)
