"""Makes a checkpoint startable in the mode that the query is to run in, before it starts.

The old logs are kept aside first, then one step of the plan follows the other.

A file in the checkpoint itself, `fraud-filter-repair.json`, says how far a repair is. No directory is renamed, so that
it is right on stores that can't do that in one go:

- It names a copy and no steps: the old logs are being copied into it; nothing is changed yet. A later repair throws
  the copy away.
- It names the steps, too: the copy is whole, and changes are being made. A later repair makes all of them again, also
  one that was cut short, before it looks for more to do.
- There is none: no repair is under way. `before-repair-<time>` stays until the next repair is done: one generation.

Cut off itself, on a store that does not replace a file in one go, it counts as none: nothing is changed yet then.
Spark reads none of them.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from fraud_filter.checkpoint.contents import KEPT_ASIDE, Contents, read_contents
from fraud_filter.checkpoint.entries import COMMITS, OFFSETS, BrokenEntryError
from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.checkpoint.notes import INPUT
from fraud_filter.checkpoint.notes import STATE as KEPT_STATE
from fraud_filter.checkpoint.plan import (
    GONE,
    Plan,
    Remove,
    Step,
    UnfitStateError,
    UnrepairableError,
    Write,
    plan_done,
    plan_repair,
    plan_restart,
    plan_skip,
)
from fraud_filter.config import ModeName, Settings, refused
from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.text.logs import get_logger

_log = get_logger(__name__)
#: How far a repair is.
STATE = "fraud-filter-repair.json"

#: Copies of earlier versions of this program, whose repair was killed.
_FORMER = ("keeping-", "repairing-")

#: What its copy can be named, and what its steps change: nothing that lies elsewhere.
_COPY = re.compile(rf"{KEPT_ASIDE}[0-9TZ-]+")

_STEP = re.compile(rf"sources|state|{INPUT.path}|{KEPT_STATE.path}|(?:{OFFSETS}|{COMMITS})(?:/[^/]+)?")

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
        UsageError: what an earlier repair left is not such.
        FraudFilterError: the file system refuses, or a query runs on the checkpoint.
    """
    now = clock()
    return _follow(files, lambda contents: plan_repair(contents, mode, round(now * 1000)), now)


def _follow(files: CheckpointFiles, find_plan: Callable[[Contents], Plan], now: float) -> Repair:
    """Carries out a plan, after what a repair that was killed has left to do; `now` in seconds since 1970.

    Raises:
        UnrepairableError: there is no plan; nothing was changed.
        UsageError: what an earlier repair left is not such.
        FraudFilterError: the file system refuses, or a query runs on the checkpoint.
    """
    copy, steps = _read_state(files)
    _carry_out(files, steps)
    if copy and not steps:
        files.remove(copy)
        files.remove(STATE)
        copy = None
    contents = read_contents(files)
    plan = find_plan(contents)
    if plan.steps:
        if copy is None:
            copy = _keep(files, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now)))
            _require_stopped(files, contents, copy)
        _write_state(files, copy, (*steps, *plan.steps))
        _carry_out(files, plan.steps)
    if copy:
        _finish(files, copy)
    return Repair(plan, copy)


def finish(files: CheckpointFiles) -> None:
    """Completes a repair that was killed; does nothing where none is under way.

    Raises:
        FraudFilterError: the file system refuses.
    """
    copy, steps = _read_state(files)
    _carry_out(files, steps)
    if copy and steps:
        _finish(files, copy)


def _carry_out(files: CheckpointFiles, steps: tuple[Step, ...]) -> None:
    for step in steps:
        if isinstance(step, Write):
            files.write(step.path, step.content)
        else:
            files.remove(step.path)


def _keep(files: CheckpointFiles, stamp: str) -> str:
    name, number = KEPT_ASIDE + stamp, 1
    while files.exists(name):  # repairs within a second
        name, number = f"{KEPT_ASIDE}{stamp}-{number}", number + 1
    _write_state(files, name, ())
    for each in _COPIED:
        if files.exists(each):
            files.copy(each, name)
    return name


def _require_stopped(files: CheckpointFiles, before: Contents, copy: str) -> None:
    after = read_contents(files)
    if list(after.offsets) != list(before.offsets) or list(after.commits) != list(before.commits):
        files.remove(copy)
        files.remove(STATE)
        raise FraudFilterError(
            f"checkpoint {files.location}: its logs change while they are read: a query runs on it; stop it first"
        )


def _finish(files: CheckpointFiles, copy: str) -> None:
    """Removes older copies; then the repair is done."""
    for name in files.names(directories=True):
        if name.startswith((KEPT_ASIDE, *_FORMER)) and name != copy:
            files.remove(name)
    files.remove(STATE)


def _read_state(files: CheckpointFiles) -> tuple[str | None, tuple[Step, ...]]:
    """The copy of a repair that is under way, and its steps as soon as they are being made."""
    if not files.exists(STATE):
        return None, ()
    try:
        found = json.loads(files.read(STATE))
    except (BrokenEntryError, ValueError, RecursionError):
        return None, ()
    try:
        copy, steps = str(found["copy"]), [_step(path, content) for path, content in found["steps"]]
        if not _COPY.fullmatch(copy):
            raise ValueError(copy)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(
            f"{files.location}/{STATE} can't be read as what an earlier repair left: put back a copy of it, or remove "
            "it if no repair was cut off"
        ) from None
    return copy, tuple(steps)


def _step(path: str, content: str | None) -> Step:
    if not _STEP.fullmatch(path):
        raise ValueError(path)
    return Remove(path) if content is None else Write(path, content.encode())


def _write_state(files: CheckpointFiles, copy: str, steps: tuple[Step, ...]) -> None:
    listed = [(step.path, step.content.decode() if isinstance(step, Write) else None) for step in steps]
    files.write(STATE, json.dumps({"copy": copy, "steps": listed}).encode())


def prepare_checkpoint(files: CheckpointFiles, settings: Settings) -> None:
    """Repairs what another mode, or a kill, has left in the checkpoint and `settings.mode` could not start from.

    Logs `event=checkpoint_repaired`; the old logs stay in the checkpoint until the next repair. The filter's sinks
    remember no batch numbers, so reading a batch again with another end is right for all of them.

    Raises:
        UsageError: nothing proves where to go on from.
        UnfitStateError: the query keeps state, which would not fit what is repaired; nothing was changed.
        FraudFilterError: the file system refuses.
    """
    for log in (OFFSETS, COMMITS):
        stray = files.drop_stray_checksums(log)
        if stray:
            _log.warning("checksums_dropped", log=log, files=",".join(stray))
    try:
        done = repair(files, settings.mode)
    except UnfitStateError:
        raise
    except UnrepairableError as error:
        raise _refusal(settings, error) from None
    _tell(done, settings)


def go_on_at(files: CheckpointFiles, settings: Settings, offsets: Mapping[int, int], why: str = GONE) -> None:
    """Has the query begin at the `offsets` of the input topic, by partition; `why`, for the log, goes on "records".

    Logs `event=checkpoint_repaired`. Where nothing is committed the query begins at `starting_offsets`.

    Raises:
        FraudFilterError: the file system refuses, or a query runs on the checkpoint.
    """
    plan = partial(plan_skip, mode=settings.mode, topic=settings.input_topic, offsets=offsets, why=why)
    _tell(_follow(files, plan, time.time()), settings)


def skip_decided(files: CheckpointFiles, settings: Settings, offsets: Mapping[int, int]) -> None:
    """Has a query without state begin at the `offsets` of the input topic, by partition: all before them is decided.

    No copy of the logs is kept: killed at any moment, it leaves what begins before that.

    Raises:
        FraudFilterError: the file system refuses.
    """
    now_ms = round(time.time() * 1000)
    plan = plan_done(read_contents(files), settings.mode, settings.input_topic, offsets, now_ms)
    _carry_out(files, plan.steps)


def restart(files: CheckpointFiles, settings: Settings, notes: Sequence[Step], why: str) -> None:
    """Has the query begin again with empty logs and no state, where the `notes` say; `why` for the log.

    Logs `event=checkpoint_repaired`. A repair that was killed has been finished before.

    Raises:
        UsageError: nothing proves what was committed.
        FraudFilterError: the file system refuses, or a query runs on the checkpoint.
    """
    try:
        done = _follow(files, partial(plan_restart, mode=settings.mode, notes=notes, why=why), time.time())
    except UnrepairableError as error:
        raise _refusal(settings, error) from None
    _tell(done, settings)


def _refusal(settings: Settings, error: UnrepairableError) -> UsageError:
    reason = f"can't be started from in {settings.mode} mode: {error}"
    return refused("checkpoint", settings.checkpoint, reason)


def _tell(done: Repair, settings: Settings) -> None:
    if done.plan.steps or done.kept_aside:
        _log.warning(
            "checkpoint_repaired",
            mode=settings.mode,
            query=settings.query_name,
            steps=len(done.plan.steps),
            kept_aside=done.kept_aside,
            reason="; ".join(done.plan.reasons),
        )
