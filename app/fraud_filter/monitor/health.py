"""Whether the filter is ready and alive, judged from what the monitor knows and from runs that fail in a row."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from fraud_filter.checkpoint.progress import Offsets
from fraud_filter.metrics.filter_metrics import State
from fraud_filter.monitor import watchdog

#: So many failures in a row are a loop.
LOOP = 3


#: Seconds of a run that count as progress, though it committed nothing.
RESET_S = 120.0


class Streak:
    """Counts them. A run makes progress when it commits something new, or runs, or waits as a standby, for `reset_s`
    seconds."""

    def __init__(self, reset_s: float = RESET_S) -> None:
        self._reset_s = reset_s
        self._count = 0
        self._before: Offsets = {}
        self._committed: Offsets = {}
        self._started_at: float | None = None
        #: Why the last run failed.
        self.cause = ""
        #: Whether the last one failed for something that is away, such as a broker: our own restart changes nothing.
        self.waits_for_others = False

    def begin(self) -> None:
        """A run begins; it has no query yet."""
        self._before, self._started_at = self._committed, None

    def start(self) -> None:
        """The query runs, or is ready to as a standby."""
        self._started_at = time.monotonic()

    def commit(self, offsets: Offsets) -> None:
        """The newest committed offsets, over all runs."""
        self._committed = offsets

    def fail(self, cause: str, *, waits_for_others: bool, has_progressed: bool = False) -> int:
        """The run has failed, after progress or not; returns how many in a row did without."""
        self._count = 1 if has_progressed or self.progress else self._count + 1
        self.cause, self.waits_for_others = cause, waits_for_others
        self.begin()
        return self._count

    @property
    def progress(self) -> bool:
        """Whether the run, which may have ended, made progress."""
        ran_s = time.monotonic() - self._started_at if self._started_at is not None else 0.0
        return self._committed != self._before or ran_s > self._reset_s

    @property
    def failures(self) -> int:
        """How many runs in a row failed without progress; 0 once the present one makes some."""
        return 0 if self.progress else self._count


#: How long the monitor may not look: a look waits for brokers that don't answer.
SILENT_S = 120.0


@dataclass(frozen=True)
class Verdict:
    """Whether the filter is healthy, and one line that says why. None where no filter answered, or nothing is known.

    `last_commit_age_s` is in seconds, `lag_records` the sum of all partitions.
    """

    healthy: bool
    line: str
    mode: str | None = None
    query: str | None = None
    state: str | None = None
    last_commit_age_s: float | None = None
    lag_records: float | None = None


@dataclass
class Condition:
    """What is known of the filter now; the monitor keeps it.

    `moves`: since it was started the query has read something, or found that nothing waits. `waits`: what keeps it from
    reading. `last_commit_at` is in
    seconds since 1970, `looked_at` in seconds of the monotonic clock.
    """

    mode: str
    query: str
    looked_at: float
    state: State = "starting"
    trouble: watchdog.Verdict = field(default_factory=watchdog.Verdict)
    moves: bool = False
    waits: str = ""
    differs: bool = False
    lag_records: float | None = None
    last_commit_at: float | None = None


def judge_ready(known: Condition, streak: Streak, now: float) -> Verdict:
    """Whether it decides, or is a standby that can take over; `now` is in seconds since 1970."""
    where, failures = f"in {known.mode} mode", _loop(streak)
    if known.state == "standby" and not failures:
        unlike = ", with other rules or settings than the active filter" if known.differs else ""
        line = f"{known.query} is a standby {where}, ready to take over{unlike}"
        return Verdict(True, line, known.mode, known.query, known.state)
    state, reason = _state(known), known.trouble.trouble or (known.waits if known.state == "running" else "")
    if failures:
        state, reason = "in a restart loop", failures
    age_s = None if known.last_commit_at is None else now - known.last_commit_at
    shown = [
        f"{known.query} is {state} {where}",
        "no commit yet" if age_s is None else f"last commit {age_s:.0f} s ago",
        *([] if known.lag_records is None else [f"lag {known.lag_records:.0f} records"]),
    ]
    line = ", ".join(shown) + (f": {reason}" if reason else "")
    return Verdict(state == "active", line, known.mode, known.query, state, age_s, known.lag_records)


def judge_alive(known: Condition, streak: Streak, now: float) -> Verdict:
    """Whether only a restart of the program could help; `now` is in seconds of the monotonic clock."""
    silent_s = now - known.looked_at
    failures = _loop(streak)
    reason = ""
    if silent_s > SILENT_S:
        reason = f"the monitor has not looked at the query for {silent_s:.0f} s"
    elif failures and not streak.waits_for_others:
        reason = failures
    return Verdict(not reason, f"{known.query} is {'not alive: ' + reason if reason else 'alive'}")


def _state(known: Condition) -> str:
    if known.state != "running":
        return known.state.replace("-", " ")
    if known.trouble.kind == "slots-lacking":
        return "short of task slots"
    if known.trouble.trouble:
        return "stalled"
    if known.waits:
        return "held up"
    return "active" if known.moves else "starting to read"


def _loop(streak: Streak) -> str:
    failures = streak.failures
    return f"{failures} restarts in a row without progress, the last: {streak.cause}" if failures >= LOOP else ""
