"""Before the query starts: where it goes on, given what the checkpoint and the input topic hold."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from fraud_filter.checkpoint.files import CheckpointError, CheckpointFiles
from fraud_filter.checkpoint.notes import Began, Input, Loss, add_losses, note_version, write_input
from fraud_filter.checkpoint.progress import Offsets
from fraud_filter.checkpoint.repair import go_on_at
from fraud_filter.config import Settings
from fraud_filter.kafka.offsets import first_offsets
from fraud_filter.modes import MODES
from fraud_filter.query import starting_offsets
from fraud_filter.rules.version import Ruling
from fraud_filter.supervisor.resume.losses import Standing, examine, require_all, tell_losses

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Beginning:
    """Where a query run begins: `settings` name offsets where nothing is committed yet.

    `at` are its offsets by partition, `ends` where they end; `new_losses` those that were not noted before.
    """

    settings: Settings
    topic_id: str
    at: Offsets
    ends: Offsets
    new_losses: list[Loss]


def settle(
    files: CheckpointFiles, settings: Settings, unread: Mapping[str, Offsets], *, has_started: bool
) -> Beginning:
    """Decides where the query goes on, and writes it down before anything is read.

    What is gone is noted, and passed over, where `fail_on_data_loss` is off. A word such as `latest` becomes offsets at
    the first start alone.

    Args:
        unread: the ends that were last seen of a topic's partitions, by its id.
        has_started: whether a query ran on the checkpoint before, in this program.

    Raises:
        DataLossError: records are lost, or the topic was recreated, and `fail_on_data_loss` is on.
        UsageError: the checkpoint belongs to a query over another source or topic, or the query would begin where
            the topic has no offset.
        CheckpointError: the checkpoint's file system refuses, or the checkpoint is gone.
        RestartableError: the brokers don't answer, or a transaction has to end first.
    """
    standing = examine(files, settings)
    if has_started and standing.kept is None:
        raise CheckpointError(f"checkpoint {files.location}: what the query wrote is not there: is its volume mounted?")
    if settings.fail_on_data_loss:
        require_all(standing, settings)
    losses = _losses(standing, unread)
    at = standing.go_on_at
    if standing.recreated:
        _log.warning(
            "event=topic_recreated topic=%s id=%s former_id=%s unread=%s", settings.input_topic, standing.topic.id,
            standing.kept.topic_id if standing.kept else "", _count(losses) if losses else "unknown",
        )  # fmt: skip
        go_on_at(files, settings, at)
    elif standing.losses:
        told = tell_losses(standing)
        _log.warning("event=data_lost topic=%s records=%d lost=%r", settings.input_topic, _count(losses), told)
        if not _passes_by_itself(standing, settings):
            go_on_at(files, settings, at)
    elif standing.at is None:
        readable = {number: (low, standing.ends[number]) for number, (low, _) in standing.bounds.items()}
        at = first_offsets(settings, readable)
        starting_offsets.require_there(settings, at, standing.bounds)
    _keep(files, settings, standing, at)
    new = add_losses(files, losses)
    if standing.number is None:
        settings = starting_offsets.begin_at(settings, at, standing.topic.partitions)
    return Beginning(settings, standing.topic.id, at, standing.ends, new)


def note_rules(files: CheckpointFiles, ruling: Ruling, beginning: Beginning) -> None:
    """Notes which rules decide from here on, before they decide anything.

    Raises:
        UsageError: what is kept of former rules can't be read.
        CheckpointError: the checkpoint's file system refuses.
    """
    began = Began(ruling.version, beginning.topic_id, beginning.at, time.time(), beginning.ends)
    if note_version(files, began, ruling.to_document()):
        _log.warning("event=rules_changed query=%s version=%s", beginning.settings.query_name, ruling.version)


def _losses(standing: Standing, unread: Mapping[str, Offsets]) -> list[Loss]:
    """Those of the topic as it is; for one that was recreated also what is known to be unread of the former one."""
    at, now, former = standing.at or {}, time.time(), standing.kept.topic_id if standing.kept else ""
    spans = [(standing.topic.id, number, span) for number, span in standing.losses.items()]
    if standing.recreated:
        ends = unread.get(former, {})
        spans = [(former, number, (at[number], end)) for number, end in ends.items() if at.get(number, end) < end]
        spans += [(standing.topic.id, number, (0, low)) for number, (low, _) in standing.bounds.items() if low > 0]
    return [Loss(topic, number, start, end, now) for topic, number, (start, end) in spans if end > start]


def _passes_by_itself(standing: Standing, settings: Settings) -> bool:
    """Whether Spark's reader goes on after what is gone: at the first record, and not before a committed offset."""
    only_removed = all(standing.bounds.get(number, (0, 0))[0] > start for number, (start, _) in standing.losses.items())
    return only_removed and standing.number is not None and MODES[settings.mode].skips_removed


def _keep(files: CheckpointFiles, settings: Settings, standing: Standing, at: Offsets) -> None:
    topic_id = standing.topic.id or (standing.kept.topic_id if standing.kept else "")
    former = Input(settings.input_topic, topic_id, {})
    if standing.kept and not standing.recreated:
        former = replace(standing.kept, topic_id=topic_id)
    wanted = former.moved(at) if standing.number is None else former
    if wanted != standing.kept:
        write_input(files, wanted)


def _count(losses: list[Loss]) -> int:
    return sum(loss.end - loss.start for loss in losses)
