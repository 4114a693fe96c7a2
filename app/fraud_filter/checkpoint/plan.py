"""What must change in a checkpoint before a mode's engine can start from it without skipping a record.

The steps stand in such an order that after each of them an engine either fails to start or
starts at a proven place or before it; what a plan leaves when it is cut short, the next plan mends.

What Spark 4.3 does at a start, read in its classes (MicroBatchExecution.initializeExecution and populateStartOffsets,
AsyncProgressTrackingMicroBatchExecution.validateOffsetLogAndGetPrevOffset, ContinuousExecution.getStartOffsets):

- micro-batch: the newest offset entry N and entry N-1 must be there ("batch N-1 doesn't exist"). N is run again from
  the end of N-1 unless it is committed. Older batches count as done, whatever the commit log says.
- async-progress: the same, with the stored entry before N, whatever its number.
- real-time: tracks its progress in the same way, and drops what comes after the newest commit first: it runs no batch
  again as it was planned.
- continuous: resumes from the newest commit. Later offset entries stay; an epoch of their number is not logged again
  (addOffset: HDFSMetadataLog.add leaves what is there): its commit would claim what the life before had read, perhaps
  more than this one. Without a commit it begins at startingOffsets again, and forgets where the micro-batch engines had
  begun (`sources/0/0`).
- micro-batch, async-progress and real-time fail on an entry without metadata, which is what continuous mode writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fraud_filter.checkpoint.contents import Broken, Contents
from fraud_filter.checkpoint.entries import COMMITS, OFFSETS, OffsetEntry, first_entry
from fraud_filter.config import ModeName
from fraud_filter.errors import FraudFilterError
from fraud_filter.modes import MODES

#: Why a query begins elsewhere.
GONE = "are gone from the topic"


class UnrepairableError(FraudFilterError):
    """Nothing proves where to go on from."""


class UnfitStateError(UnrepairableError):
    """A repair would begin a batch elsewhere than the one that the state belongs to."""


@dataclass(frozen=True)
class Write:
    """A file, written or replaced in one go."""

    path: str
    content: bytes


@dataclass(frozen=True)
class Remove:
    """A file that goes."""

    path: str


Step = Write | Remove


@dataclass(frozen=True)
class Plan:
    """Steps, in their order, and the reasons for them; no steps: the mode can start as it is.

    `begins_anew`: nothing is committed and nothing says where the query began: it begins at `startingOffsets`.
    """

    mode: ModeName
    steps: tuple[Step, ...] = ()
    reasons: tuple[str, ...] = ()
    begins_anew: bool = False


@dataclass
class _Draft:
    steps: list[Step] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def write(self, entry: OffsetEntry) -> None:
        self.steps.append(Write(f"{OFFSETS}/{entry.number}", entry.content))

    def remove(self, log: str, numbers: list[int]) -> None:
        """Newest first: an engine that starts in between goes back, not forward."""
        self.steps += [Remove(f"{log}/{number}") for number in sorted(numbers, reverse=True)]


def plan_repair(contents: Contents, mode: ModeName, now_ms: int) -> Plan:
    """The repair that lets `mode` start from a checkpoint whose query is stopped.

    Re-reads what is not proven to be written; skips nothing.

    Args:
        now_ms: milliseconds since 1970, for entries that lack a time.

    Raises:
        UnrepairableError: nothing proves where to go on from.
        UnfitStateError: the query keeps state, which would not fit what is repaired; nothing was changed.
    """
    draft = _Draft()
    begins_anew = False
    kept = _kept(contents, mode)
    if kept:
        _run_again(draft, contents, mode, kept)
    elif contents.committed is not None:
        _go_on(draft, contents, mode, now_ms)
    else:
        begins_anew = _begin(draft, contents, mode, now_ms)
    if contents.stateful and not all(map(_fits_state, draft.steps)):
        raise UnfitStateError(
            f"{'; '.join(draft.reasons)}: the state fits its own batches only; a start of the filter makes it again "
            "from the input topic"
        )
    return Plan(mode, tuple(draft.steps), tuple(draft.reasons), begins_anew)


def plan_skip(contents: Contents, mode: ModeName, topic: str, offsets: Mapping[int, int], why: str = GONE) -> Plan:
    """Has the next batch begin at the `offsets` of a topic, by partition, instead of where the newest commit ended.

    For a checkpoint that `mode` can start from, and records that are gone from the topic or decided already. Where
    nothing is committed all that says where the query began goes, so that it begins at `startingOffsets`.
    """
    newest = contents.proven
    planned = [number for number in contents.offsets if newest is None or number > newest.number]
    place = f"after batch {newest.number}" if newest else "before the first commit"
    draft = _Draft(reasons=[f"records {place} {why}"])
    draft.remove(OFFSETS, planned)
    if newest:
        draft.write(newest.moved(topic, offsets))
    else:
        draft.remove(COMMITS, list(contents.commits))
        draft.steps += [Remove("sources")] if contents.initial else []
    return Plan(mode, tuple(draft.steps), tuple(draft.reasons))


def plan_done(contents: Contents, mode: ModeName, topic: str, offsets: Mapping[int, int], now_ms: int) -> Plan:
    """Has the next batch of a query without state begin at the `offsets` of a topic: all before them is decided.

    As `plan_skip`; where nothing is committed, a batch 0 without a record counts as committed, that ends there. Cut
    short, it leaves what begins before that.

    Args:
        now_ms: milliseconds since 1970, for an entry that lacks a time.
    """
    if contents.proven:
        return plan_skip(contents, mode, topic, offsets, "are decided")
    draft = _Draft(reasons=["records before the first commit are decided"])
    line = json.dumps({topic: {str(number): offset for number, offset in sorted(offsets.items())}})
    _commit_first(draft, contents, (line,), now_ms)
    return Plan(mode, tuple(draft.steps), tuple(draft.reasons))


def plan_restart(contents: Contents, mode: ModeName, notes: Sequence[Step], why: str) -> Plan:
    """Has the query begin again at batch 0, with empty logs and an empty state or none.

    Args:
        notes: the steps that keep where it begins, made first.
        why: the reason, for the log.

    Raises:
        UnrepairableError: nothing proves what was committed.
    """
    if contents.committed is not None and contents.proven is None:
        raise _unknown_place(contents)
    return Plan(mode, (*notes, *map(Remove, (OFFSETS, COMMITS, "sources", "state"))), (why,))


def _fits_state(step: Step) -> bool:
    """Whether the state of the committed batch stays the right one: what was planned after it may be planned again."""
    return isinstance(step, Remove) and not step.path.startswith(f"{COMMITS}/")


def _kept(contents: Contents, mode: ModeName) -> OffsetEntry | None:
    """The batch that was planned and not committed, if the mode runs it again as it was planned."""
    entries = [entry for entry in map(contents.offsets.readable, contents.pending) if entry]
    if not MODES[mode].resume.runs_planned_again or not entries or not entries[-1].metadata:
        return None
    return entries[-1]


def _run_again(draft: _Draft, contents: Contents, mode: ModeName, batch: OffsetEntry) -> None:
    """Batch `batch` runs again, from the proven place."""
    proven, number = contents.proven, batch.number
    if number > 0:
        start = proven.sources if proven else contents.initial
        if start is None:
            raise _unknown_place(contents)
        if not _starts_at(contents, mode, number, start):
            draft.reasons.append(_gap(contents, number))
            draft.write(OffsetEntry(number - 1, batch.version, batch.metadata, start))
    _drop_broken(draft, contents, after=number)


def _starts_at(contents: Contents, mode: ModeName, number: int, start: tuple[str, ...]) -> bool:
    """Whether the engine would run the batch from there, as things are."""
    if MODES[mode].resume.skips_numbers:
        earlier = [other for other in contents.offsets if other < number]
        if not earlier:
            return start == contents.initial
        before = contents.offsets.readable(earlier[-1])
    else:
        before = contents.offsets.readable(number - 1)
    return before is not None and before.sources == start


def _go_on(draft: _Draft, contents: Contents, mode: ModeName, now_ms: int) -> None:
    """The next batch or epoch starts at the proven place; what was planned after it is planned again."""
    proven, committed = contents.proven, contents.committed
    if proven is None or committed is None:
        raise _unknown_place(contents)
    number = proven.number
    if number != committed:
        draft.reasons.append(
            f"the offset entry of the committed batch {committed} {_fault(contents, committed)}: all after batch "
            f"{number} is read again"
        )
        if contents.commits.readable(number) is None:
            draft.steps.append(Write(f"{COMMITS}/{number}", contents.commits.newest() or b""))
    later = [other for other in contents.offsets if other > number]
    commits = [other for other in contents.commits if other > number]
    if later:
        draft.reasons.append(_dropped(contents, later))
        draft.remove(OFFSETS, later)
    draft.reasons += [_broken_commit(contents, other) for other in commits if other > committed]
    draft.remove(COMMITS, commits)
    if not MODES[mode].resume.from_commit:
        _complete(draft, contents, mode, proven, now_ms)


def _complete(draft: _Draft, contents: Contents, mode: ModeName, newest: OffsetEntry, now_ms: int) -> None:
    """What the micro-batch engines read of a committed batch: its entry with metadata, and the entry before it."""
    number = newest.number
    if not MODES[mode].resume.skips_numbers and number > 0 and contents.offsets.readable(number - 1) is None:
        before = contents.offsets.newest(number - 1) or newest
        draft.reasons.append(_gap(contents, number))
        draft.write(before.as_number(number - 1).with_metadata(now_ms))
    if not newest.metadata:
        draft.reasons.append(f"entry {number} was written by continuous mode and lacks the metadata line")
        draft.write(newest.with_metadata(now_ms))


def _begin(draft: _Draft, contents: Contents, mode: ModeName, now_ms: int) -> bool:
    """Nothing is committed: the query begins again, where it began at first if that is known."""
    pending = contents.pending
    if pending and pending[0] > 0 and contents.initial is None:
        raise _unknown_place(contents)
    if pending:
        draft.reasons.append(_dropped(contents, pending))
    draft.reasons += [_broken_commit(contents, number) for number in contents.commits]
    resume = MODES[mode].resume
    if resume.from_commit and contents.initial:
        draft.reasons.append(f"nothing is committed, and {mode} mode would not begin where the query first began")
        _commit_first(draft, contents, contents.initial, now_ms)
        return False
    draft.remove(OFFSETS, pending)
    draft.remove(COMMITS, list(contents.commits))
    if contents.leftovers and not resume.from_commit:
        draft.reasons.append("a killed query left temporary files in the logs, which must be empty at a first start")
        draft.steps += [Remove(path) for path in contents.leftovers]
    return contents.initial is None


def _commit_first(draft: _Draft, contents: Contents, sources: tuple[str, ...], now_ms: int) -> None:
    """Nothing is committed: from now on batch 0 is, and ends at the offsets of the `sources`."""
    draft.remove(OFFSETS, [number for number in contents.offsets if number > 0])
    draft.remove(COMMITS, list(contents.commits))
    draft.write(first_entry(sources, now_ms))
    draft.steps.append(Write(f"{COMMITS}/0", b'v1\n{"nextBatchWatermarkMs":0}'))


def _drop_broken(draft: _Draft, contents: Contents, after: int) -> None:
    """Entries that can't be read, newer than what counts. Until the last of them is gone, no engine starts."""
    later = [number for number in contents.offsets if number > after]
    committed = contents.committed
    commits = [number for number in contents.commits if committed is None or number > committed]
    draft.reasons += [f"entry {number} {_fault(contents, number)}" for number in later]
    draft.remove(OFFSETS, later)
    draft.reasons += [_broken_commit(contents, number) for number in commits]
    draft.remove(COMMITS, commits)


def _dropped(contents: Contents, numbers: list[int]) -> str:
    broken = [f"{number} {_fault(contents, number)}" for number in numbers if contents.offsets.readable(number) is None]
    if broken:
        return f"offset entry {', '.join(broken)}: what it covered is read again"
    return f"{_numbers(numbers)} not committed: what it covered is read again"


def _gap(contents: Contents, number: int) -> str:
    """Why the entry before `number` is written."""
    if contents.offsets.readable(number - 1) is None:
        return f"batch {number - 1} doesn't exist in the offset log, which skips numbers in async-progress mode"
    return f"batch {number - 1} is not committed, and Spark would take it for done: read again with batch {number}"


def _fault(contents: Contents, number: int) -> str:
    entry = contents.offsets.get(number)
    return f"is broken ({entry.reason})" if isinstance(entry, Broken) else "is missing"


def _broken_commit(contents: Contents, number: int) -> str:
    entry = contents.commits.get(number)
    reason = entry.reason if isinstance(entry, Broken) else "it is missing"
    return f"commit entry {number} is broken ({reason}): its batch counts as not committed"


def _numbers(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"entry {numbers[0]} is"
    return f"entries {numbers[0]} to {numbers[-1]} are"


def _unknown_place(contents: Contents) -> UnrepairableError:
    if contents.committed is None:
        fact = f"its offset log goes up to {max(contents.offsets)}, and no entry of its commit log can be read"
    else:
        fact = f"batch {contents.committed} is committed, and no entry of its offset log up to there can be read"
    return UnrepairableError(
        f"{fact}: nothing proves what was written. Take a new checkpoint, and give starting_offsets for it"
    )
