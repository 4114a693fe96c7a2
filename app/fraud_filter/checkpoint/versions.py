"""Which rules decided in a checkpoint, and from where on: the audit decides each payment by those of its time.

What rules are is nothing to this module: it keeps a document of each version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.checkpoint.kept import FOLDER, by_partition, read_kept

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
