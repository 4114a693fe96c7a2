"""Reads a checkpoint: two listings at once, entries when they are asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import partial

from fraud_filter.checkpoint.contents import Contents, Log
from fraud_filter.checkpoint.entries import (
    BrokenEntryError,
    OffsetEntry,
    check_commit_entry,
    parse_initial_offset,
    parse_offset_entry,
)
from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.checkpoint.plan import COMMITS, OFFSETS

#: An entry's name as Spark writes it; what else lies in a log is none, to Spark neither.
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
#: Prefix of the directories in which a repair keeps the old logs; see `repair`.
KEPT_ASIDE = "before-repair-"


def read_contents(files: CheckpointFiles) -> Contents:
    """What the checkpoint holds; an empty one when there is none.

    Raises:
        FraudFilterError: the file system refuses or can't be reached.
    """
    names = {log: files.names(log) for log in (OFFSETS, COMMITS)}
    # Spark takes a directory for an entry, too, and can't read it.
    numbers = {log: entry_numbers(names[log] + files.names(log, directories=True)) for log in names}
    return Contents(
        offsets=Log(numbers[OFFSETS], partial(read_offset_entry, files)),
        commits=Log(numbers[COMMITS], partial(_commit_entry, files)),
        query_id=_query_id(files),
        initial=_initial(files),
        leftovers=tuple(f"{log}/{name}" for log, found in names.items() for name in found if _is_temporary(name)),
        stateful=bool(files.names("state", directories=True)),
        kept_aside=tuple(name for name in files.names(directories=True) if name.startswith(KEPT_ASIDE)),
    )


def entry_numbers(names: Iterable[str]) -> list[int]:
    """The numbers of those names that are an entry's."""
    return [int(name) for name in names if _NUMBER.fullmatch(name)]


def _is_temporary(name: str) -> bool:
    """What a killed write of Spark's or ours left; checksums go with their files."""
    return name.startswith(".") and name.endswith(".tmp")


def read_offset_entry(files: CheckpointFiles, number: int) -> OffsetEntry:
    """Entry `number` of the offset log.

    Raises:
        BrokenEntryError: it can't be read as such.
        CheckpointError: the file system refuses.
    """
    return parse_offset_entry(number, files.read(f"{OFFSETS}/{number}"))


def _commit_entry(files: CheckpointFiles, number: int) -> bytes:
    content = files.read(f"{COMMITS}/{number}")
    check_commit_entry(content)
    return content


def _query_id(files: CheckpointFiles) -> str | None:
    if not files.exists("metadata"):
        return None
    try:
        found = json.loads(files.read("metadata")).get("id")
    except (BrokenEntryError, ValueError, AttributeError, RecursionError):
        return None
    return str(found)


def _initial(files: CheckpointFiles) -> tuple[str, ...] | None:
    """Where each source first began; None unless every source is Kafka's and has written it down."""
    sources = sorted(entry_numbers(files.names("sources", directories=True)))
    found = []
    for source in sources:
        path = f"sources/{source}/0"
        try:
            line = parse_initial_offset(files.read(path)) if files.exists(path) else None
        except BrokenEntryError:
            line = None
        if line is None:
            return None
        found.append(line)
    return tuple(found) or None
