"""Compares the checkpoint with the input topic: is it the same topic, and which unread records are gone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from fraud_filter.checkpoint.contents import read_contents
from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.checkpoint.notes import INPUT, Input
from fraud_filter.checkpoint.progress import CheckpointReader, Offsets, offsets_of
from fraud_filter.config import Settings, refused
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.admin import Topic, find_input, open_admin
from fraud_filter.kafka.consumer import find_bounds, open_consumer
from fraud_filter.supervisor.failures import GO_ON_WITHOUT, DataLossError, RestartableError

Bounds = dict[int, tuple[int, int]]


@dataclass(frozen=True)
class Comparison:
    """The newest commit of the checkpoint beside the input topic as it is.

    `bounds` are the first and the end offset by partition, records of open transactions included; `ends` those that a
    reader with the settings' isolation level sees. `at` is what is committed, else where the query began, else None;
    `number` the newest batch or epoch that is committed.
    """

    topic: Topic
    bounds: Bounds
    ends: Offsets
    kept: Input | None
    at: Offsets | None
    number: int | None

    @property
    def recreated(self) -> bool:
        """Whether the topic has another id than the one that the checkpoint is about."""
        return bool(self.kept and self.kept.topic_id and self.topic.id and self.kept.topic_id != self.topic.id)

    @property
    def losses(self) -> dict[int, tuple[int, int]]:
        """What `find_losses` finds; none of a topic that was recreated, whose offsets mean something else."""
        return {} if self.recreated else find_losses(self.at or {}, self.bounds)

    @property
    def undecided(self) -> Offsets:
        """The first payments, by partition, that may have to be decided; those before them are read for a state."""
        decided = {} if self.recreated or not self.kept else self.kept.decided
        return {number: max(offset, decided.get(number, 0)) for number, offset in self.go_on_at.items()}

    @property
    def go_on_at(self) -> Offsets:
        """Where to go on in each partition: after what is gone, and at the beginning of a topic that was recreated."""
        first = {number: low for number, (low, _) in self.bounds.items()}
        if self.recreated:
            return first
        losses = self.losses
        return {n: first[n] if n in losses else at for n, at in (self.at or {}).items() if n in first}


def find_losses(at: Mapping[int, int], bounds: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """The lost offsets of each partition, from the first to before the second, where a query is to go on from `at`.

    Where a partition ends before that, it was cut or recreated: what is gone is unknown, and the range is empty, as
    that of a partition that is not there any more.
    """
    losses = {}
    for number, offset in sorted(at.items()):
        first, end = bounds.get(number, (offset, -1))
        if first > offset:
            losses[number] = (offset, first)
        elif end < offset:
            losses[number] = (offset, offset)
    return losses


def compare(files: CheckpointFiles, settings: Settings) -> Comparison:
    """Compares the newest commit with the topic as it is; changes nothing.

    Raises:
        UsageError: the checkpoint belongs to a query over another source or topic, or what is kept can't be read.
        CheckpointError: the checkpoint's file system refuses.
        RestartableError: the brokers don't answer, or a transaction is open before what is committed.
    """
    kept = INPUT.read(files)
    newest = CheckpointReader(files, settings.input_topic).newest()
    if (newest and not newest.end) or (kept and kept.topic != settings.input_topic):
        reason = f"was made by a query over another source than the topic {settings.input_topic!r}"
        raise refused("checkpoint", settings.checkpoint, reason, "give that query's input_topic, or a new location")
    began = (kept.first if kept else None) or _first_of_spark(files, settings)
    topic, bounds, ends = _ask(settings)
    at, number = (newest.end, newest.number) if newest else (began, None)
    found = Comparison(topic, bounds, ends, kept, at, number)
    if not found.recreated and number is not None:
        _require_ended(found, settings)
    return found


def require_all(found: Comparison, settings: Settings) -> None:
    """Does nothing where no unread record is gone.

    Raises:
        DataLossError: some are, or the topic was recreated.
    """
    losses = found.losses
    if not losses and not found.recreated:
        return
    known = f"committed was {found.at} at batch or epoch {found.number}" if found.number is not None else (
        f"nothing was committed, and the query began at {found.at}"
    )  # fmt: skip
    where = f"{known} of the checkpoint {settings.checkpoint!r}; {GO_ON_WITHOUT}"
    if found.recreated:
        former = found.kept.topic_id if found.kept else ""
        raise DataLossError(
            f"the topic {settings.input_topic!r} was recreated: its id is {found.topic.id}, the checkpoint is about "
            f"the former one, {former}; what was unread of that one is gone; {where}"
        )
    raise DataLossError(
        f"unread records of the topic {settings.input_topic!r} are gone: {describe_losses(found)}; {where}"
    )


def describe_losses(found: Comparison) -> str:
    """The losses by partition and offsets."""
    return ", ".join(_describe(number, span, found.bounds) for number, span in found.losses.items())


def _first_of_spark(files: CheckpointFiles, settings: Settings) -> Offsets | None:
    """Where Spark's micro-batch engines wrote down that the query began."""
    for line in read_contents(files).initial or ():
        if offsets := offsets_of(json.loads(line), settings.input_topic):
            return offsets
    return None


def _ask(settings: Settings) -> tuple[Topic, Bounds, Offsets]:
    name = settings.input_topic
    try:
        topic = find_input(open_admin(settings), settings)
        # With a transaction open a reader of committed records sees an end before what another has read.
        with open_consumer(settings, isolation_level="read_uncommitted") as consumer:
            bounds = find_bounds(consumer, settings, name, topic.partitions)
        with open_consumer(settings) as consumer:
            readable = find_bounds(consumer, settings, name, topic.partitions)
    except FraudFilterError as error:
        raise RestartableError("broker-away", str(error)) from None
    return topic, bounds, {number: end for number, (_, end) in readable.items()}


def _require_ended(found: Comparison, settings: Settings) -> None:
    """Spark takes an end before its committed offset for a loss: it has read on with another isolation level."""
    at, losses = found.at or {}, found.losses
    early = {n: end for n, end in found.ends.items() if n not in losses and end < at.get(n, end)}
    if early:
        raise RestartableError(
            "transaction-open",
            f"transactions of the topic {settings.input_topic!r} are open at {early}, before the committed offsets, as "
            "left by a query with kafka_isolation_level=read_uncommitted: this one starts when they have ended",
        )


def _describe(number: int, span: tuple[int, int], bounds: Mapping[int, tuple[int, int]]) -> str:
    start, end = span
    if number not in bounds:
        return f"partition {number} does not exist any more"
    if bounds[number][1] < end:
        return f"partition {number} ends at offset {bounds[number][1]}, before {end}: it was cut or recreated"
    return f"partition {number} offsets {start} to {end - 1} ({end - start} records)"
