"""What the audit can't see in the topics: payments that Kafka removed before they were decided, or before the audit.

Of the former the filter's checkpoint tells: it holds the committed offsets and the losses that the filter has noted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fraud_filter.audit.result import Gap
from fraud_filter.checkpoint.files import CheckpointFiles, open_checkpoint
from fraud_filter.checkpoint.notes import INPUT, LOSSES, VERSIONS, VersionStart, document_of
from fraud_filter.checkpoint.progress import CheckpointReader
from fraud_filter.config import Settings
from fraud_filter.kafka.admin import find_input, open_admin
from fraud_filter.rules.version import DecisionRules, read_decision_rules


@dataclass(frozen=True)
class Recorded:
    """What a checkpoint tells of the input topic: noted losses, where each partition is committed to, and began.

    `versions` of the rules began one after the other; `known_rules` has each of them by its version.
    """

    losses: list[Gap]
    committed: dict[int, int]
    begin: dict[int, int] = field(default_factory=dict)
    versions: list[VersionStart] = field(default_factory=list)
    known_rules: dict[str, DecisionRules] = field(default_factory=dict)


def read_recorded(settings: Settings) -> Recorded | None:
    """Reads the checkpoint of the filter; None where there is none, or it is about another topic.

    Raises:
        UsageError: no broker answers, or there is no such topic.
        FraudFilterError: Java does not start, or the checkpoint's file system refuses.
    """
    directory = settings.checkpoint_directory
    if settings.checkpoint_is_local and directory and not directory.is_dir():
        return None  # no Java is needed to see that
    topic_id = find_input(open_admin(settings), settings).id
    with open_checkpoint(settings.checkpoint, settings) as files:
        return recorded_in(files, settings, topic_id)


def recorded_in(files: CheckpointFiles, settings: Settings, topic_id: str) -> Recorded | None:
    """What the checkpoint behind `files` tells of the input topic with this id; None where it is about another one.

    Raises:
        UsageError: the rules of a version that decided can't be read.
        CheckpointError: the checkpoint's file system refuses.
    """
    kept = INPUT.read(files)
    if kept is None or (kept.topic, kept.topic_id) != (settings.input_topic, topic_id):
        return None
    losses = [Gap(loss.partition, loss.start, loss.end) for loss in LOSSES.read(files) if loss.topic_id == topic_id]
    newest = CheckpointReader(files, settings.input_topic).newest()
    versions = [one for one in VERSIONS.read(files) if one.topic_id == topic_id]
    # Rules that come back are the same document.
    names = set() if settings.query else {one.version for one in versions}
    known_rules = {
        version: read_decision_rules(document_of(version).read(files), version, settings) for version in names
    }
    return Recorded(losses, newest.end if newest else kept.first, kept.begin, versions, known_rules)


def find_gaps(
    recorded: Recorded, low: Mapping[int, int], start: Mapping[int, int], end: Mapping[int, int]
) -> tuple[Gap, ...]:
    """The gaps that lie in the audited range, or end where it starts.

    All by partition: `low` is the first retained offset, `start` the first audited one, `end` the one after the last.
    """
    now = [Gap(number, at, low[number]) for number, at in recorded.committed.items() if at < low.get(number, at)]
    merged: list[Gap] = []
    for gap in sorted(recorded.losses + now):
        if merged and merged[-1].partition == gap.partition and gap.start <= merged[-1].end:
            merged[-1] = replace(merged[-1], end=max(merged[-1].end, gap.end))
        else:
            merged.append(gap)
    last = {number: max(at, start[number] + 1) for number, at in end.items()}
    return tuple(
        gap for gap in merged if gap.end >= start.get(gap.partition, gap.end + 1) and gap.start < last[gap.partition]
    )


def find_missing(start: Mapping[int, int], end: Mapping[int, int], first: Mapping[int, int]) -> tuple[Gap, ...]:
    """What was asked for and is no longer retained.

    All by partition: `start` and `end` are the offsets that were asked for, if any, `first` is the first audited one.
    """
    wanted = {number: start.get(number, 0 if at == end.get(number) else at) for number, at in first.items()}
    return tuple(Gap(number, wanted[number], at) for number, at in sorted(first.items()) if wanted[number] < at)
