"""Whether a running query does what it should, judged from its progress, its pulse and the input's ends.

All that it judges is given to it, the time too.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from fraud_filter.checkpoint.progress import Offsets
from fraud_filter.modes import Mode
from fraud_filter.monitor.pulse import Pulse

#: Further patience before the first sign of progress of a query run: plans and code are compiled, all readers connect.
WARM_UP_S = 30.0

Remedy = Literal["stalled", "partitions-added", "slots-lacking", "slots-back", "topic-recreated"]
Kind = Literal["", "waits", "java-silent", "no-progress", "no-commits", Remedy]


@dataclass(frozen=True)
class Verdict:
    """`trouble`: one sentence, empty when there is none; `remedy`: why the query must be started again, if it must.

    `kind` stays the same while the numbers of the sentence change.
    """

    trouble: str = ""
    remedy: Remedy | None = None
    kind: Kind = ""


class Watchdog:
    """Judges one run of a query.

    A query is stalled when the input has grown since its last sign of progress and `patience_s` seconds have gone by
    without another one. Signs are a change of the committed offsets and of the tasks' counts of records read and
    written, which move whether payments are flagged or not; an input that rests is no stall. The first sign may take
    `WARM_UP_S` longer.
    """

    def __init__(
        self,
        *,
        partitions: int,
        state_partitions: int = 0,
        mode: Mode,
        patience_s: float,
        answer_s: float | None = None,
        commit_s: float,
        heartbeat_s: float | None = None,
        now: float,
        gives_way: bool = False,
    ) -> None:
        """`now` and all times are seconds of one clock.

        Args:
            partitions: those of the input when the query started.
            state_partitions: those of the features' state, each with a task slot too.
            patience_s: how much longer than usual a sign may not come.
            answer_s: how long Java may not answer; None: as `patience_s`.
            commit_s: how long a healthy query may show no sign.
            heartbeat_s: the same as soon as running tasks have told what they read, for a mode that always reads.
            gives_way: a standby may wait, with executors of its own: a query that has lost some ends at once.
        """
        self._started_with = partitions
        self._state_slots = state_partitions
        self._mode = mode
        self._patience_s = patience_s
        self._answer_s = answer_s or patience_s
        self._usual_s = commit_s
        self._heartbeat_s = heartbeat_s
        self._answered_at = now
        self._warm_up_s = WARM_UP_S
        self._sign: tuple[Hashable, Hashable] | None = None
        self._progress = _Silence()
        self._commits = _Silence()
        self._commit_s = commit_s
        self._commit_warm_up_s = WARM_UP_S
        self._gives_way = gives_way
        self._lacked_slots = False
        #: Names of the executors that the query began with; empty before the first look at them.
        self._executors: frozenset[str] = frozenset()
        #: Task slots that are held permanently: one for each partition of the input as it is now, and of the state.
        self.slots_needed = partitions + state_partitions if mode.holds_tasks else 0

    def look(
        self, now: float, committed: Offsets, latest: Offsets | None, pulse: Pulse | None, partitions: int = 0
    ) -> Verdict:
        """One look at the query; `latest` is None while no broker answers: growth can't be seen then.

        Args:
            partitions: how many the input has, where `latest` may lack some whose end nobody tells.
        """
        if pulse is not None:
            self._answered_at = max(self._answered_at, pulse.at)
        stall = self._stall(now, committed, latest, pulse)
        if stall.trouble:
            return stall
        if self._mode.holds_tasks and pulse is not None and latest is not None:
            partitions = partitions or len(latest) or self._started_with
            self.slots_needed = partitions + self._state_slots
            return self._slots(partitions, pulse)
        return Verdict()

    def _stall(self, now: float, committed: Offsets, latest: Offsets | None, pulse: Pulse | None) -> Verdict:
        silent_s = now - self._answered_at
        if silent_s > self._answer_s:
            return Verdict(f"Spark's Java process has not answered for {silent_s:.0f} s", "stalled", "java-silent")
        offsets = tuple(sorted(committed.items()))
        sign = (offsets, pulse.records if pulse else None)
        if sign != self._sign:
            if self._sign is not None and self._sign[1] is not None:
                self._warm_up_s = 0.0
                if self._heartbeat_s is not None and pulse and pulse.records != self._sign[1]:
                    self._usual_s = self._heartbeat_s
            if self._sign is not None and self._sign[0] != offsets:
                self._commit_warm_up_s = 0.0
            self._sign = sign
        waiting_s, grown = self._progress.look(now, sign, latest)
        if waiting_s > self._patience_s + self._usual_s + self._warm_up_s:
            trouble = f"the input has grown by {grown} records in {waiting_s:.0f} s, and the query made no progress"
            return Verdict(trouble, "stalled", "no-progress")
        waiting_s, grown = self._commits.look(now, offsets, latest)
        if self._mode.timely_commits and waiting_s > self._patience_s + self._commit_s + self._commit_warm_up_s:
            trouble = f"the input has grown by {grown} records in {waiting_s:.0f} s, and the query committed nothing"
            return Verdict(trouble, "stalled", "no-commits")
        return Verdict()

    def _slots(self, partitions: int, pulse: Pulse) -> Verdict:
        slots = pulse.slots
        lost = self._lost_slots(pulse)
        remedy: Remedy | None = "slots-lacking" if self._gives_way and lost else None
        if slots < self.slots_needed:
            self._lacked_slots = True
            state = f", the state of the features {self._state_slots}" if self._state_slots else ""
            return Verdict(
                f"the input has {partitions} partitions{state}, the application has {slots} task slots: up to "
                f"{self.slots_needed - slots} partitions are not read until there are more",
                remedy,
                "slots-lacking",
            )
        if remedy:
            return Verdict("executors of the query were lost, and replaced since the last look", remedy, remedy)
        if partitions > self._started_with and self._mode.holds_tasks:
            return Verdict(
                f"the input has {partitions} partitions, the query started with {self._started_with}",
                "partitions-added",
                "partitions-added",
            )
        if self._lacked_slots or lost:
            trouble = f"{slots} task slots are there again for {partitions} partitions"
            return Verdict(trouble, "slots-back", "slots-back")
        return Verdict()

    def _lost_slots(self, pulse: Pulse) -> bool:
        """Whether too few executors are left of those that the query began with: some of its tasks are gone then.

        A lost one may be replaced between two looks.
        """
        self._executors = self._executors or frozenset(executor.name for executor in pulse.executors)
        kept = sum(executor.cores for executor in pulse.executors if executor.name in self._executors)
        return kept < self._started_with + self._state_slots


class _Silence:
    """For how long a sign has not changed while the input grew."""

    def __init__(self) -> None:
        self._sign: Hashable = None
        self._base: Offsets | None = None
        self._grown_at: float | None = None

    def look(self, now: float, sign: Hashable, latest: Offsets | None) -> tuple[float, int]:
        """Seconds since the input first grew after the last change, and by how many records; (0, 0) before that."""
        if sign != self._sign or latest is None:
            self._sign, self._base, self._grown_at = sign, None, None
        if latest is None:
            return 0.0, 0
        self._base = latest | (self._base or {})  # an end that was not known before is no growth
        grown = sum(max(0, end - self._base[number]) for number, end in latest.items())
        if grown and self._grown_at is None:
            self._grown_at = now
        return (now - self._grown_at if self._grown_at is not None else 0.0), grown
