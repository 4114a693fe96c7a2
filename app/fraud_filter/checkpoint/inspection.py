"""What `fraud-filter checkpoint inspect` says about a checkpoint."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, get_args

from tenacity import retry, retry_if_exception_type, stop_after_attempt

from fraud_filter.checkpoint.contents import Broken, Contents, read_contents
from fraud_filter.checkpoint.entries import COMMITS, OFFSETS
from fraud_filter.checkpoint.files import CheckpointFiles, GoneError
from fraud_filter.checkpoint.plan import UnrepairableError, plan_repair
from fraud_filter.config import ModeName

#: A running query removes entries in one go, and then none for many commits.
_LOOKS = 5


@dataclass(frozen=True)
class Start:
    """Whether a mode can start from the checkpoint as it is, whether a repair makes it so, and what prevents it.

    `begins_anew`: it begins where the setting `starting_offsets` says, because nothing is committed.
    """

    startable: bool
    repairable: bool
    why: tuple[str, ...]
    begins_anew: bool = False


@dataclass(frozen=True)
class Inspection:
    """What a checkpoint tells. Numbers are those of batches or epochs; times are seconds since 1970.

    `committed_offsets` has one item a source, for Kafka {topic: {partition: offset}}, read from entry `proven_entry`.
    `pending` were planned or read and not committed. `broken` entries can't be read, by path.
    """

    location: str
    query_id: str | None
    newest_entry: int | None
    newest_commit: int | None
    proven_entry: int | None
    committed_offsets: list[Any]
    planned_at: float | None
    pending: list[int]
    broken: dict[str, str]
    stateful: bool
    kept_aside: tuple[str, ...]
    modes: dict[ModeName, Start]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@retry(retry=retry_if_exception_type(GoneError), stop=stop_after_attempt(_LOOKS), reraise=True)
def inspect_checkpoint(files: CheckpointFiles, now_ms: int) -> Inspection:
    """Judges a checkpoint, also that of a running query, which removes old entries meanwhile.

    Args:
        now_ms: milliseconds since 1970.

    Raises:
        CheckpointError: the file system refuses, or entries are removed faster than they are read.
    """
    return inspect_contents(files.location, read_contents(files), now_ms)


def inspect_contents(location: str, contents: Contents, now_ms: int) -> Inspection:
    """Judges a checkpoint; `now_ms` are milliseconds since 1970."""
    proven = contents.proven
    newest = contents.offsets.newest()
    return Inspection(
        location=location,
        query_id=contents.query_id,
        newest_entry=max(contents.offsets, default=None),
        newest_commit=contents.committed,
        proven_entry=proven.number if proven else None,
        committed_offsets=proven.offsets if proven else [],
        planned_at=newest.timestamp_ms / 1000 if newest and newest.timestamp_ms else None,
        pending=contents.pending,
        broken=_broken(contents),
        stateful=contents.stateful,
        kept_aside=contents.kept_aside,
        modes={mode: _start(contents, mode, now_ms) for mode in get_args(ModeName)},
    )


def _broken(contents: Contents) -> dict[str, str]:
    offsets = {f"{OFFSETS}/{number}": contents.offsets[number] for number in contents.offsets}
    commits = {f"{COMMITS}/{number}": contents.commits[number] for number in contents.commits}
    return {path: entry.reason for path, entry in (offsets | commits).items() if isinstance(entry, Broken)}


def _start(contents: Contents, mode: ModeName, now_ms: int) -> Start:
    try:
        plan = plan_repair(contents, mode, now_ms)
    except UnrepairableError as error:
        return Start(False, False, (str(error),))
    return Start(not plan.steps, True, plan.reasons, plan.begins_anew)
