"""What the filter keeps in its checkpoint beside Spark's logs: which topic they are about, what was lost, what
state, what the active filter runs with, and which rules decided from where on.

Spark reads none of it. Each file is replaced in one atomic step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from fraud_filter.checkpoint.entries import BrokenEntryError
from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.config import refused

FOLDER = "fraud-filter"

INPUT, LOSSES, STATE = f"{FOLDER}/input.json", f"{FOLDER}/losses.json", f"{FOLDER}/state.json"

T = TypeVar("T")


@dataclass(frozen=True)
class Input:
    """The topic that the checkpoint's offsets belong to, and where the query began at first, by partition.

    `topic_id` is "" where the brokers give none; `begin` is empty where something was committed before it was kept.
    `restart`: where its logs began again, after the state was dropped or begun; empty where they never did.
    """

    topic: str
    topic_id: str
    begin: dict[int, int]
    restart: dict[int, int] = field(default_factory=dict)

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


def read_input(files: CheckpointFiles) -> Input | None:
    """What is kept about the input; None before the first start.

    Raises:
        UsageError: the file can't be read as such.
        CheckpointError: the file system refuses.
    """

    def parse(found: Any) -> Input:
        begin, restart = by_partition(found["begin"]), by_partition(found.get("restart", {}))
        return Input(str(found["topic"]), str(found["topic_id"]), begin, restart)

    return read_kept(files, INPUT, parse, None)


def write_input(files: CheckpointFiles, kept: Input) -> None:
    """Keeps it, in place of what was kept.

    Raises:
        CheckpointError: the file system refuses.
    """
    files.write(INPUT, kept_content(kept))


def read_losses(files: CheckpointFiles) -> list[Loss]:
    """All losses that were noted, in their order.

    Raises:
        UsageError: the file can't be read as such.
        CheckpointError: the file system refuses.
    """
    return read_kept(files, LOSSES, lambda found: [Loss(**each) for each in found], [])


def add_losses(files: CheckpointFiles, losses: list[Loss]) -> list[Loss]:
    """Notes further losses and returns what of them was not noted before.

    Raises:
        UsageError: the file can't be read as such.
        CheckpointError: the file system refuses.
    """
    if not losses:
        return []
    noted = read_losses(files)
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
        files.write(LOSSES, json.dumps([vars(loss) for loss in noted]).encode())
    return new


@dataclass(frozen=True)
class KeptState:
    """What the query's state was made for: the features, as `Feature.described`, in how many partitions, how many
    payments of a key."""

    features: list[list[Any]]
    partitions: int
    payments: int


def kept_content(kept: Input | KeptState) -> bytes:
    """The bytes of its file."""
    return json.dumps(vars(kept)).encode()


def read_state(files: CheckpointFiles) -> KeptState | None:
    """What is kept about the state; None where the query has none.

    Raises:
        UsageError: the file can't be read as such.
        CheckpointError: the file system refuses.
    """
    return read_kept(files, STATE, lambda found: KeptState(**found), None)


def write_state(files: CheckpointFiles, kept: KeptState | None) -> None:
    """Keeps it, in place of what was kept.

    Raises:
        CheckpointError: the file system refuses.
    """
    if kept:
        files.write(STATE, kept_content(kept))
    else:
        files.remove(STATE)


def by_partition(found: Any) -> dict[int, int]:
    """Offsets as JSON has them, by the partition's number as text."""
    return {int(number): int(offset) for number, offset in found.items()}


def read_kept(files: CheckpointFiles, path: str, parse: Callable[[Any], T], missing: T) -> T:
    """What `parse` makes of a JSON file in the checkpoint; `missing` where there is none.

    Raises:
        UsageError: the file can't be read as such.
        CheckpointError: the file system refuses.
    """
    if not files.exists(path):
        return missing
    try:
        return parse(json.loads(files.read(path)))
    except (BrokenEntryError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise refused(
            "checkpoint", f"{files.location}/{path}", "can't be read",
            "put back a copy of it, or remove it if the input topic was not recreated since the filter's last run",
        ) from None  # fmt: skip


ACTIVE = f"{FOLDER}/active.json"

#: By name of what is compared: a digest of its value.
Fingerprint = Mapping[str, str]


def write_active(files: CheckpointFiles, fingerprint: Fingerprint) -> None:
    """Keeps it, in place of what was kept.

    Raises:
        CheckpointError: the file system refuses.
    """
    files.write(ACTIVE, json.dumps(dict(fingerprint)).encode())


def differing(files: CheckpointFiles, own: Fingerprint) -> list[str]:
    """The names of what the active filter has otherwise; none where nothing is known of it.

    Raises:
        CheckpointError: the file system refuses.
    """
    if not files.exists(ACTIVE):
        return []
    try:
        found = json.loads(files.read(ACTIVE))
        return sorted(name for name in own.keys() | found.keys() if own.get(name) != found.get(name))
    except (BrokenEntryError, ValueError, AttributeError):  # nothing depends on it
        return []


VERSIONS = f"{FOLDER}/versions.json"


@dataclass(frozen=True)
class Began:
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


def read_versions(files: CheckpointFiles) -> list[Began]:
    """All, in the order in which they began; a version may be there again.

    Raises:
        UsageError: the file can't be read as such.
        CheckpointError: the file system refuses.
    """

    def parse(found: Any) -> list[Began]:
        return [
            Began(
                str(one["version"]), str(one["topic_id"]), by_partition(one["begin"]), float(one["at"]),
                None if one.get("ends") is None else by_partition(one["ends"]),
            )
            for one in found
        ]  # fmt: skip

    return read_kept(files, VERSIONS, parse, [])


def read_document(files: CheckpointFiles, version: str) -> dict[str, Any]:
    """What is kept of a version that began.

    Raises:
        UsageError: it is not there, or can't be read.
        CheckpointError: the file system refuses.
    """
    return read_kept(files, _place(version), dict, {})


def note_version(files: CheckpointFiles, began: Began, document: Mapping[str, Any]) -> bool:
    """Notes that a version begins, before it decides anything; whether it is another one than the newest.

    Raises:
        UsageError: what is kept can't be read.
        CheckpointError: the file system refuses.
    """
    noted = read_versions(files)
    if noted and (noted[-1].version, noted[-1].topic_id) == (began.version, began.topic_id):
        return False
    if not files.exists(_place(began.version)):
        files.write(_place(began.version), json.dumps(document).encode())
    files.write(VERSIONS, json.dumps([vars(one) for one in (*noted, began)]).encode())
    return bool(noted)


def _place(version: str) -> str:
    return f"{FOLDER}/rules/{version}.json"
