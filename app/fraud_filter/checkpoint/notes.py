"""What the filter keeps in its checkpoint beside Spark's logs: which topic they are about, what was lost, what
state, what the active filter runs with, and which rules decided from where on.

Spark reads none of it. Each file is replaced in one atomic step.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from fraud_filter.checkpoint.entries import BrokenEntryError
from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.config import refused
from fraud_filter.errors import UsageError

FOLDER = "fraud-filter"

Kept = TypeVar("Kept")


class Note(Generic[Kept]):
    """A file of the folder, as JSON. Its methods raise CheckpointError where the file system refuses."""

    def __init__(self, name: str, kind: Any, missing: Kept) -> None:
        """`kind`: the type of what it holds; `missing`: what stands for it where there is no such file."""
        self.path = f"{FOLDER}/{name}.json"
        self._kind: TypeAdapter[Kept] = TypeAdapter(kind)
        self._missing = missing

    def read(self, files: CheckpointFiles) -> Kept:
        """What is kept.

        Raises:
            UsageError: the file can't be read as such.
        """
        if not files.exists(self.path):
            return self._missing
        try:
            return self._kind.validate_json(files.read(self.path))
        except (BrokenEntryError, ValidationError):
            raise refused(
                "checkpoint", f"{files.location}/{self.path}", "can't be read",
                "put back a copy of it, or remove it if the input topic was not recreated since the filter's last run",
            ) from None  # fmt: skip

    def write(self, files: CheckpointFiles, kept: Kept) -> None:
        """Keeps it, in place of what was kept."""
        files.write(self.path, self.content(kept))

    def content(self, kept: Kept) -> bytes:
        """The bytes of its file."""
        return self._kind.dump_json(kept)


@dataclass(frozen=True)
class Input:
    """The topic that the checkpoint's offsets belong to, and where the query began at first, by partition.

    `topic_id` is "" where the brokers give none; `begin` is empty where something was committed before it was kept.
    `restart`: where its logs began again, after the state was dropped or was to be made again; empty where they never
    did. `decided`: all payments before these offsets are decided; they are read for the state.
    """

    topic: str
    topic_id: str
    begin: dict[int, int]
    restart: dict[int, int] = field(default_factory=dict)
    decided: dict[int, int] = field(default_factory=dict)

    @property
    def first(self) -> dict[int, int]:
        """Where the query goes on while nothing is committed."""
        return self.restart or self.begin

    def moved(self, at: dict[int, int]) -> Input:
        """The same with another place to go on while nothing is committed."""
        return replace(self, restart=at) if self.restart else replace(self, begin=at)


@dataclass(frozen=True)
class Loss:
    """Offsets `start` to before `end` of a partition were removed before they were committed; `at` in s since 1970."""

    topic_id: str
    partition: int
    start: int
    end: int
    at: float


@dataclass(frozen=True)
class KeptState:
    """What the query's state was made for: the features, as `Feature.described`, in how many partitions, how many
    payments of a key."""

    features: list[list[Any]]
    partitions: int
    payments: int


@dataclass(frozen=True)
class VersionStart:
    """A version of the rules decided all payments of the topic from the offsets `begin` on, by partition, until the
    next one began; `at` in seconds since 1970.

    `ends` is where the partitions ended then. The lock was held, so that no former version has decided a payment from
    there on. None: not known, as in checkpoints of older filters.
    """

    version: str
    topic_id: str
    begin: dict[int, int]
    at: float
    ends: dict[int, int] | None = None


#: By name of what is compared: a digest of its value.
Fingerprint = Mapping[str, str]

#: There is none before the first start.
INPUT: Note[Input | None] = Note("input", Input, None)
#: All losses, in their order.
LOSSES: Note[list[Loss]] = Note("losses", list[Loss], [])
#: There is none where the query keeps no state.
STATE: Note[KeptState | None] = Note("state", KeptState, None)
#: In the order in which they began; a version may be there again.
VERSIONS: Note[list[VersionStart]] = Note("versions", list[VersionStart], [])
#: What the active filter runs with.
ACTIVE: Note[Fingerprint] = Note("active", dict[str, str], {})
#: The generation of what the newest filter writes.
WRITER: Note[int] = Note("writer", int, 0)


def document_of(version: str) -> Note[dict[str, Any]]:
    """Where the rules of a version are kept."""
    return Note(f"rules/{version}", dict[str, Any], {})


def next_writer(files: CheckpointFiles) -> int:
    """The generation of the filter that starts now: higher than all that wrote from this checkpoint before.

    Milliseconds since 1970 where clocks are right, so that a new checkpoint over the same topics goes on, too.

    Raises:
        UsageError: what is kept can't be read.
        CheckpointError: the file system refuses.
    """
    generation = max(WRITER.read(files) + 1, round(time.time() * 1000))
    WRITER.write(files, generation)
    return generation


def add_losses(files: CheckpointFiles, losses: list[Loss]) -> list[Loss]:
    """Notes further losses and returns what of them was not noted before.

    Raises:
        UsageError: what is kept can't be read.
        CheckpointError: the file system refuses.
    """
    if not losses:
        return []
    noted = [*LOSSES.read(files)]
    new = []
    for loss in losses:
        own = [n for n, old in enumerate(noted) if (old.topic_id, old.partition) == (loss.topic_id, loss.partition)]
        known_to = max((noted[n].end for n in own), default=0)
        rest = replace(loss, start=max(loss.start, known_to))
        if rest.start >= rest.end:
            continue
        new.append(rest)
        if own and rest.start == known_to:
            noted[own[-1]] = replace(noted[own[-1]], end=rest.end, at=rest.at)
        else:
            noted.append(rest)
    if new:
        LOSSES.write(files, noted)
    return new


def note_state(files: CheckpointFiles, kept: KeptState | None) -> None:
    """Keeps what the state was made for, or that there is none.

    Raises:
        CheckpointError: the file system refuses.
    """
    if kept:
        STATE.write(files, kept)
    else:
        files.remove(STATE.path)


def note_version(files: CheckpointFiles, start: VersionStart, document: Mapping[str, Any]) -> bool:
    """Notes that a version begins, before it decides anything; whether it is another one than the newest.

    Raises:
        UsageError: what is kept can't be read.
        CheckpointError: the file system refuses.
    """
    noted = VERSIONS.read(files)
    if noted and (noted[-1].version, noted[-1].topic_id) == (start.version, start.topic_id):
        return False
    place = document_of(start.version)
    if not files.exists(place.path):
        place.write(files, dict(document))
    VERSIONS.write(files, [*noted, start])
    return bool(noted)


def differing(files: CheckpointFiles, own: Fingerprint) -> list[str]:
    """The names of what the active filter has otherwise; none where nothing is known of it.

    Raises:
        CheckpointError: the file system refuses.
    """
    try:
        found = ACTIVE.read(files)
    except UsageError:  # nothing depends on it
        return []
    return sorted(name for name in own.keys() | found.keys() if found and own.get(name) != found.get(name))
