"""Carries a repair out: the old logs are kept aside first, then one atomic step follows the other.

A directory in the checkpoint itself says by its name how far a repair is (on any file system, and where the checkpoint
is a mount point, too):

- `keeping-<time>`: the old logs are being copied; nothing is changed yet. A later repair throws it away.
- `repairing-<time>`: the copy is whole, and changes are being made. A later repair goes on with it.
- `before-repair-<time>`: the repair is done. It stays until the next repair is done: one generation.

Spark reads none of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fraud_filter.checkpoint.contents import Contents
from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.checkpoint.plan import COMMITS, OFFSETS, Plan, Step, Write, plan_repair, plan_skip
from fraud_filter.checkpoint.reading import KEPT_ASIDE, read_contents
from fraud_filter.config import ModeName
from fraud_filter.errors import FraudFilterError

_KEEPING, _REPAIRING = "keeping-", "repairing-"
_COPIED = ("metadata", OFFSETS, COMMITS, "sources")


@dataclass(frozen=True)
class Repair:
    """What was done: the plan that was carried out, and where the old logs are (None: nothing was to be done)."""

    plan: Plan
    kept_aside: str | None = None


def repair(files: CheckpointFiles, mode: ModeName, clock: Callable[[], float] = time.time) -> Repair:
    """Makes a checkpoint whose query is stopped startable in `mode`; does nothing where it is so already.

    Killed at any moment, it leaves what a second call repairs.

    Args:
        clock: seconds since 1970.

    Raises:
        UnrepairableError: nothing proves where to go on from; nothing was changed.
        FraudFilterError: the file system refuses, or a query runs on the checkpoint.
    """
    now = clock()
    contents = read_contents(files)
    return _carry_out(files, contents, plan_repair(contents, mode, round(now * 1000)), now)


def skip(
    files: CheckpointFiles,
    mode: ModeName,
    topic: str,
    offsets: Mapping[int, int],
    clock: Callable[[], float] = time.time,
) -> Repair:
    """Has a query, which is stopped and can start in `mode`, begin at the `offsets` of a topic, by partition.

    Args:
        clock: seconds since 1970.

    Raises:
        FraudFilterError: the file system refuses, or a query runs on the checkpoint.
    """
    contents = read_contents(files)
    return _carry_out(files, contents, plan_skip(contents, mode, topic, offsets), clock())


def _carry_out(files: CheckpointFiles, contents: Contents, plan: Plan, now: float) -> Repair:
    under_way = _find(files, _REPAIRING)
    if not plan.steps:
        return Repair(plan, _finish(files, under_way[-1]) if under_way else None)
    if under_way:
        copy = under_way[-1]
    else:
        copy = _keep(files, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now)))
        _require_stopped(files, contents)
    for step in plan.steps:
        carry_out(files, step)
    return Repair(plan, _finish(files, copy))


def carry_out(files: CheckpointFiles, step: Step) -> None:
    """One step of a plan."""
    if isinstance(step, Write):
        files.write(step.path, step.content)
    else:
        files.remove(step.path)


def _keep(files: CheckpointFiles, stamp: str) -> str:
    for name in _find(files, _KEEPING):
        files.remove(name)
    partial, whole = _KEEPING + stamp, _REPAIRING + stamp
    for name in _COPIED:
        if files.exists(name):
            files.copy(name, partial)
    files.rename(partial, whole)
    return whole


def _require_stopped(files: CheckpointFiles, before: Contents) -> None:
    after = read_contents(files)
    if list(after.offsets) != list(before.offsets) or list(after.commits) != list(before.commits):
        for name in _find(files, _REPAIRING):
            files.remove(name)
        raise FraudFilterError(
            f"checkpoint {files.location}: its logs change while they are read: a query runs on it; stop it first"
        )


def _finish(files: CheckpointFiles, copy: str) -> str:
    """Gives the copy its lasting name and removes older ones."""
    name = KEPT_ASIDE + copy.removeprefix(_REPAIRING)
    older = [other for other in _find(files, KEPT_ASIDE) if other != name]
    if files.exists(name):  # two repairs within a second
        files.remove(name)
    files.rename(copy, name)
    for other in older:
        files.remove(other)
    return name


def _find(files: CheckpointFiles, prefix: str) -> list[str]:
    return [name for name in files.names(directories=True) if name.startswith(prefix)]
