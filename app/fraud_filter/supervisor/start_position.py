"""Where a query starts, given what its checkpoint and the input topic hold."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fraud_filter.checkpoint.contents import read_contents
from fraud_filter.checkpoint.entries import read_watermark
from fraud_filter.checkpoint.files import CheckpointError, CheckpointFiles, open_files
from fraud_filter.checkpoint.notes import (
    INPUT,
    Input,
    Loss,
    VersionStart,
    add_losses,
    next_writer,
    note_state,
    note_version,
)
from fraud_filter.checkpoint.plan import UnfitStateError
from fraud_filter.checkpoint.progress import Offsets
from fraud_filter.checkpoint.repair import finish, go_on_at, prepare_checkpoint, skip_decided
from fraud_filter.config import Settings, duration_s, refused
from fraud_filter.kafka.admin import require_append_time
from fraud_filter.kafka.consumer import first_offsets, first_since, first_times_ms
from fraud_filter.lock.checkpoint_lock import Lock
from fraud_filter.modes import MODES
from fraud_filter.monitor.monitor import Monitor, StartPosition
from fraud_filter.query import preflight
from fraud_filter.query.preflight import Inputs
from fraud_filter.query.velocity import needs_watermark
from fraud_filter.records import decision_id
from fraud_filter.supervisor.losses import Comparison, compare, describe_losses, require_all
from fraud_filter.supervisor.signals import Stop
from fraud_filter.supervisor.state import find_misfit, first_times, rebuild_state, require_fit, wanted_state
from fraud_filter.text.logs import get_logger

if TYPE_CHECKING:
    from pyroaring import BitMap64
    from pyspark.sql import SparkSession

_log = get_logger(__name__)
#: Fewer payments are dropped by the query sooner than the checkpoint is written.
_WORTH_PASSING = 1000


def find_start_position(
    spark: SparkSession,
    inputs: Inputs,
    settings: Settings,
    monitor: Monitor,
    stop: Stop,
    lock: Lock,
    *,
    state_is_broken: bool = False,
) -> tuple[Settings, StartPosition]:
    """Makes the checkpoint one that the query over `inputs` can start from, and says where it goes on.

    All is written down before anything is read. What is gone from the topic is noted and counted, and passed over where
    `fail_on_data_loss` is off. A word such as `latest` becomes offsets at the first start alone.

    Args:
        state_is_broken: the last query could not read its state.

    Returns:
        The settings with which the query starts; they name offsets where nothing is committed yet. And its position.

    Raises:
        DataLossError: records are lost, or the topic was recreated, and `fail_on_data_loss` is on.
        UsageError: the checkpoint belongs to a query over another source or topic, its state can't be made again, or
            the query would begin where the topic has no offset.
        CheckpointError: the checkpoint's file system refuses, or the checkpoint is gone.
        RestartableError: the brokers don't answer, or a transaction has to end first.
    """
    files = open_files(spark, settings.checkpoint)
    lock.hold(files, lambda: stop.requested)
    finish(files)
    if settings.source != "kafka":
        require_fit(files, inputs, settings)
        prepare_checkpoint(files, settings)
        return settings, StartPosition("", {}, files, writer=next_writer(files))
    found = _prepare(files, inputs, settings, state_is_broken=state_is_broken)
    if monitor.has_started and found.kept is None:
        raise CheckpointError(f"checkpoint {files.location}: what the query wrote is not there: is its volume mounted?")
    losses = _losses(found, monitor.ends)
    at = _pass_losses(files, settings, found, losses)
    _note_input(files, settings, found, at)
    monitor.count_lost(add_losses(files, losses))
    if found.number is None:
        settings = preflight.begin_at(settings, at, found.topic.partitions)
    undecided = found.undecided or at  # none are known at a first start
    _note_rules(files, inputs, settings, found, undecided)
    position = StartPosition(found.topic.id, at, files, writer=next_writer(files), undecided=undecided)
    if not inputs.query.features:
        return settings, position
    settings = fit_lag(settings, at, found.ends)
    return settings, replace(position, watermark_ms=find_watermark(files, inputs, settings))


def pass_decided(position: StartPosition, settings: Settings, written: BitMap64) -> StartPosition:
    """Where a query without state begins: at the first payments that have no decision, by partition.

    With `emit=all` that is where the last filter ended, so that nothing is read again.

    Args:
        written: the payments that are decided, by `decision_id`; `position.for_state` among them.

    Raises:
        CheckpointError: the file system refuses.
    """
    at = {number: offset + _count_decided(written, number, offset) for number, offset in position.at.items()}
    passed = sum(at[number] - offset for number, offset in position.at.items())
    if passed < _WORTH_PASSING:
        return position
    skip_decided(position.files, settings, at)
    _log.info("decided_passed", query=settings.query_name, payments=passed)
    return replace(position, at=at, undecided=at)


def _count_decided(written: BitMap64, partition: int, offset: int) -> int:
    """How many payments in a row have a decision, from this one on."""
    first = decision_id(partition, offset)
    before = written.rank(first) - (first in written)
    is_gap = lambda count: written.rank(first + count) - before <= count  # noqa: E731
    return bisect_left(range(len(written)), True, key=is_gap)


def _prepare(files: CheckpointFiles, inputs: Inputs, settings: Settings, *, state_is_broken: bool) -> Comparison:
    """Repairs the checkpoint, or has its state made again where that does not fit; returns it beside the topic."""
    if inputs.query.features:
        require_append_time(settings, [settings.input_topic])
    why = "the state can't be read" if state_is_broken else find_misfit(files, wanted_state(inputs, settings))
    if not why:
        try:
            prepare_checkpoint(files, settings)
        except UnfitStateError as error:
            why = str(error)
    found = compare(files, settings)
    if settings.fail_on_data_loss:
        require_all(found, settings)
    if not why and inputs.query.features and is_watermark_ahead(files, inputs, settings, found):
        why = "the state's watermark is ahead of payments that are not decided"
    if why and inputs.state_partitions and not inputs.query.features:
        raise refused(
            "checkpoint", settings.checkpoint, f"has a state that the query can't go on from: {why}",
            "put back a copy of it, or give a new location, where the state begins empty",
        )  # fmt: skip
    if why and not found.at:  # nothing was read yet
        note_state(files, wanted_state(inputs, settings))
    elif why:
        rebuild_state(files, inputs, settings, found, why)
        found = compare(files, settings)
    return found


def _pass_losses(files: CheckpointFiles, settings: Settings, found: Comparison, losses: list[Loss]) -> Offsets:
    """The offsets to go on at; where records are gone the checkpoint names the ones behind them from now on."""
    at = found.go_on_at
    if found.recreated:
        _log.warning(
            "topic_recreated",
            topic=settings.input_topic,
            id=found.topic.id,
            former_id=found.kept.topic_id if found.kept else "",
            unread=_count(losses) if losses else "unknown",
        )
        go_on_at(files, settings, at)
    elif found.losses:
        lost = describe_losses(found)
        _log.warning("data_lost", topic=settings.input_topic, records=_count(losses), lost=lost)
        if not _passes_by_itself(found, settings):
            go_on_at(files, settings, at)
    elif found.at is None:
        readable = {number: (low, found.ends[number]) for number, (low, _) in found.bounds.items()}
        at = first_offsets(settings, readable)
        preflight.require_there(settings, at, found.bounds)
    return at


def _note_rules(files: CheckpointFiles, inputs: Inputs, settings: Settings, found: Comparison, at: Offsets) -> None:
    """Notes which rules decide from here on, before they decide anything."""
    query = inputs.query
    began = VersionStart(query.version, found.topic.id, at, time.time(), found.ends)
    if note_version(files, began, query.to_document()):
        _log.warning("rules_changed", query=settings.query_name, version=query.version)


def _losses(found: Comparison, unread: Mapping[str, Offsets]) -> list[Loss]:
    """Those of the topic as it is; for one that was recreated also what is known to be unread of the former one."""
    at, now, former = found.at or {}, time.time(), found.kept.topic_id if found.kept else ""
    spans = [(found.topic.id, number, span) for number, span in found.losses.items()]
    if found.recreated:
        ends = unread.get(former, {})
        spans = [(former, number, (at[number], end)) for number, end in ends.items() if at.get(number, end) < end]
        spans += [(found.topic.id, number, (0, low)) for number, (low, _) in found.bounds.items() if low > 0]
    return [Loss(topic, number, start, end, now) for topic, number, (start, end) in spans if end > start]


def _passes_by_itself(found: Comparison, settings: Settings) -> bool:
    """Whether Spark's reader goes on after what is gone: at the first record, and not before a committed offset."""
    only_removed = all(found.bounds.get(number, (0, 0))[0] > start for number, (start, _) in found.losses.items())
    return only_removed and found.number is not None and MODES[settings.mode].skips_removed


def _note_input(files: CheckpointFiles, settings: Settings, found: Comparison, at: Offsets) -> None:
    topic_id = found.topic.id or (found.kept.topic_id if found.kept else "")
    former = Input(settings.input_topic, topic_id, {})
    if found.kept and not found.recreated:
        former = replace(found.kept, topic_id=topic_id)
    wanted = former.moved(at) if found.number is None else former
    if wanted != found.kept:
        INPUT.write(files, wanted)


def _count(losses: list[Loss]) -> int:
    return sum(loss.end - loss.start for loss in losses)


def fit_lag(settings: Settings, at: Mapping[int, int], ends: Mapping[int, int]) -> Settings:
    """Settings whose `velocity_lag` is longer than the backlog, however old that is.

    Spark drops payments that lie further behind the newest one than that, and a short partition is worked off before
    a long one.

    Args:
        at: where the query goes on, by partition.
        ends: where a reader sees the partitions end.
    """
    now_ms = time.time() * 1000
    unread = {number: offset for number, offset in at.items() if offset < ends.get(number, 0)}
    recent = first_since(settings, dict.fromkeys(unread, round(now_ms - duration_s(settings.velocity_lag) * 500)))
    older = {number: offset for number, offset in unread.items() if recent.get(number, ends[number]) > offset}
    # How old takes a read.
    behind_s = (now_ms - min(first_times_ms(settings, older, ends).values(), default=now_ms)) / 1000
    if 2 * behind_s <= duration_s(settings.velocity_lag):
        return settings
    lag = f"{round(2 * behind_s) + 1} seconds"
    _log.warning("state_kept_longer", velocity_lag=lag, backlog_s=behind_s)
    return settings.model_copy(update={"velocity_lag": lag})


def is_watermark_ahead(files: CheckpointFiles, inputs: Inputs, settings: Settings, found: Comparison) -> bool:
    """Whether the query would reject payments as late because a clock was ahead when the state was written."""
    watermark_ms = find_watermark(files, inputs, settings)
    if not watermark_ms:
        return False
    first_ms = min(first_times(settings, found).values(), default=0)
    return watermark_ms > first_ms - inputs.query.features[0].late_ms


def find_watermark(files: CheckpointFiles, inputs: Inputs, settings: Settings) -> int:
    """The watermark of the checkpoint's state in milliseconds since 1970; 0 where the query need not know it.

    It need not after a start with the same settings: what is behind the watermark is late for the query anyway. It
    must where the lag is longer now, or this machine's clock is behind the one that the former query went by.

    Raises:
        CheckpointError: the file system refuses.
    """
    contents = read_contents(files)
    batch, commit = contents.offsets.newest(), contents.commits.newest()
    newest = max(batch.watermark_ms if batch else 0, read_watermark(commit) if commit else 0)
    return newest if needs_watermark(newest, time.time() * 1000, inputs.query.features, settings) else 0
