"""Kills the filter under load, or changes it, again and again, and sees who goes on, and when."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from fraud_filter.audit.gaps import Recorded, recorded_in
from fraud_filter.audit.result import AuditResult
from fraud_filter.audit.run import audit
from fraud_filter.checkpoint.files import CheckpointFiles, open_checkpoint
from fraud_filter.config import ModeName, duration_s
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.admin import find_input, open_admin
from lab.harness.drain import drain
from lab.harness.embedded_stack import Scene
from lab.harness.outcome import Audited
from lab.harness.processes import Child
from lab.harness.programs import location
from lab.harness.waiting import let_pass, wait_until
from lab.takeover.cards import send_cards
from lab.takeover.gap import Gap, open_tail
from lab.takeover.result import PLANNED, Interruption, What
from lab.transitions.filter_run import FilterRun

#: Deadlines in seconds: Spark's start takes about 10 s on 2 idle cores.
_START_S = 240
_DRAIN_S = 90
#: How long all processes of a filter are frozen.
_FROZEN_S = 2.0
_SETTLE_S = 1.0


class Relay:
    """Filters that follow each other on one checkpoint; audited from its first payment on.

    Of changed rules the audit begins before the last change but one: what came before that was committed by then.
    """

    def __init__(
        self, scene: Scene, mode: ModeName, whats: Sequence[What], *, standby: bool, cards: int, in_turn: bool
    ) -> None:
        """Starts the first one; it can be the standby of another where there is to be one.

        `cards`: so many pay once at the beginning, and what they paid is committed before the first interruption.
        `in_turn`: of a planned change the former filter waits, and is the next one to take over.
        """
        self._scene, self._mode, self._standby, self._cards = scene, mode, standby, cards
        self._in_turn = in_turn
        self._name = f"{'-'.join(whats)}-{mode}-{'standby' if standby else 'alone'}"
        self._runs = 0
        self._start = self._audit_from = self._drained = scene.topic.end_offsets()
        self._audited: AuditResult | None = None
        self._filters: list[FilterRun] = []
        #: Of the checkpoint, for all audits: the Java behind it takes seconds to start.
        self._files: CheckpointFiles | None = None
        self._opened = ExitStack()
        try:
            self._add(standby=in_turn if whats[0] in PLANNED else standby)
            self._reach(scene.topic.end_offsets())
            if cards:
                send_cards(scene.stack.settings, cards)
                drain(scene.topic, scene.probe.has_passed, _START_S, "the cards are not known", self._programs)
                let_pass(self._longest_batch_s, self._programs)
        except BaseException:
            self.stop()
            raise

    def interrupt(self, what: What) -> Interruption:
        """Kills driver and Java of the active filter, has its Java hang, or freezes both, and sees who goes on.

        With a standby that one does; without, a killed filter is started again at once, one that hangs by itself. One
        that was frozen goes on when it thaws: on a local disk it has kept the lock.

        Raises:
            FraudFilterError: no decision comes in time, a program ended, or another filter worked beside a frozen one.
        """
        scene = self._scene
        if self._standby:
            self._await_standby()
        let_pass(scene.seconds, self._programs)
        with open_tail(scene.stack.settings) as tail:
            active = self._filters[0]
            self._strike(active, what)
            gap = tail.await_fresh(active.killed_at or 0.0, _START_S, self._raise_if_dead)
        return self._audit(what, gap)

    def change(self, what: What) -> Interruption:
        """Has a filter with other settings, rules or mode take over from the active one.

        Raises:
            FraudFilterError: it does not, or a program ended.
        """
        scene, former = self._scene, self._filters[0]
        let_pass(scene.seconds, self._programs)
        with open_tail(scene.stack.settings) as tail:
            in_turn = len(self._filters) > 1
            following = self._ask_waiting() if in_turn else self._add_next(what)

            def has_begun() -> bool:
                tail.read()
                return following.last_told == "started"

            others = (scene.stack.broker, scene.generator, following.child)
            wait_until(has_begun, _START_S + self._longest_batch_s, f"{following.child.name} did not start", others)
            self._filters.remove(former)
            tail.await_fresh(time.time(), _START_S, self._raise_if_dead)
            gap = tail.longest
        if self._in_turn:
            self._filters.append(former)
            audited = self._audit(what, gap, in_turn=in_turn)  # it gets warm meanwhile
            wait_until(lambda: _is_waiting(former), _START_S, f"{former.child.name} does not wait", self._programs)
            return audited
        former.end_handed_over(others)
        return self._audit(what, gap)

    def _audit(self, what: What, gap: Gap, *, in_turn: bool = False) -> Interruption:
        scene = self._scene
        end = drain(scene.topic, scene.probe.has_passed, _DRAIN_S, "not all was decided", self._programs)
        settings = scene.stack.settings
        recorded = self._read_recorded() if what in PLANNED else None
        found = audit(settings, start=self._audit_from, end=end, settle_s=_SETTLE_S, recorded=recorded)
        before, self._audited = self._audited, found
        if what == "rules":
            self._audit_from, self._drained = self._drained, end
            self._audited = audit(settings, start=self._audit_from, end=end, settle_s=0, recorded=recorded)
        counts = Audited.of(found, before)
        return Interruption(
            what, self._mode, self._standby, gap.seconds, gap.every_partition_s, counts, cards=self._cards,
            in_turn=in_turn,
        )  # fmt: skip

    def _read_recorded(self) -> Recorded | None:
        settings = self._scene.stack.settings
        if self._files is None:
            at = location(settings, self._scene.stack.workspace, self._name)
            self._files = self._opened.enter_context(open_checkpoint(at, settings))
        return recorded_in(self._files, settings, find_input(open_admin(settings), settings).id)

    def _ask_waiting(self) -> FilterRun:
        """Has the filter that waits ask for a handover."""
        waiting = self._filters[1]
        waiting.ask()
        return waiting

    def _add_next(self, what: What) -> FilterRun:
        """Starts the filter that is to follow: with another `linger_ms`, other rules, or another mode."""
        number = self._runs
        changes: dict[str, Any] = {"linger_ms": number % 2} if what == "handover" else {}
        if what == "rules":
            changes["rules"] = self._scene.stack.workspace.path / f"rules-{number}.yml"
            changes["rules"].write_text(f"rules:\n  - name: next-{number}\n    when: amount > 0.{number:03}\n")
        other: ModeName = "real-time" if self._mode == "micro-batch" else "micro-batch"
        mode = other if what == "switch" and self._filters[0].mode == self._mode else self._mode
        return self._add(mode=mode, handover=True, changes=changes)

    @property
    def _longest_batch_s(self) -> float:
        return duration_s(self._scene.stack.settings.real_time_duration)

    def _await_standby(self) -> None:
        """Has one filter beside the active one, and waits until it can take over."""
        if len(self._filters) == 1:
            self._add(standby=True)
        wait_until(lambda: any(map(_is_waiting, self._filters)), _START_S, "no standby is ready", self._programs)
        self._filters.sort(key=_is_waiting)  # which of the two is active: after a hang, say, the other one

    def _strike(self, active: FilterRun, what: What) -> None:
        if what == "hang":
            active.hang_java()
            return
        if what == "freeze":
            with active.frozen():
                let_pass(_FROZEN_S, self._programs)
                if self._standby and not _is_waiting(self._filters[1]):
                    raise FraudFilterError(f"{self._filters[1].child.name} took over from a filter that was frozen")
            return
        self._filters.pop(0)
        active.stop("kill")
        if not self._standby:
            self._add(standby=False)

    def stop(self) -> None:
        """Ends what runs, standbys first."""
        self._opened.close()
        for run in reversed(self._filters):
            run.stop("clean")

    def _add(
        self,
        *,
        standby: bool = False,
        mode: ModeName | None = None,
        handover: bool = False,
        changes: Mapping[str, Any] | None = None,
    ) -> FilterRun:
        self._runs += 1
        run = FilterRun(
            self._scene.stack,
            mode or self._mode,
            self._start,
            checkpoint=self._name,
            log=f"{self._name}-{self._runs:02}.log",
            standby=standby,
            handover=handover,
            changes=changes,
        )
        self._filters.append(run)
        run.child.start()
        return run

    def _reach(self, offsets: dict[int, int]) -> None:
        wait_until(lambda: self._scene.probe.has_passed(offsets), _START_S, "nothing was decided", self._programs)

    def _raise_if_dead(self) -> None:
        for program in self._programs:
            program.raise_if_dead()

    @property
    def _programs(self) -> tuple[Child, ...]:
        return (self._scene.stack.broker, self._scene.generator, *(run.child for run in self._filters))


def _is_waiting(standby: FilterRun) -> bool:
    """Whether the last word of its log about its part is that it waits."""
    return standby.last_told == "standby_ready"


def run_interruptions(
    scene: Scene,
    whats: tuple[What, ...],
    mode: ModeName,
    *,
    standby: bool,
    tries: int,
    cards: int,
    in_turn: bool,
    tell: Callable[[Interruption], None],
) -> list[Interruption]:
    """`tries` interruptions of each kind in a mode, in turn; one that fails is part of the result, and ends them."""
    results: list[Interruption] = []
    relay: Relay | None = None
    what = whats[0]
    try:
        relay = Relay(scene, mode, whats, standby=standby, cards=cards, in_turn=in_turn)
        for what in whats * tries:
            results.append(relay.change(what) if what in PLANNED else relay.interrupt(what))
            tell(results[-1])
    except FraudFilterError as error:
        results.append(Interruption(what, mode, standby, error=str(error), cards=cards))
        tell(results[-1])
    finally:
        if relay:
            relay.stop()
    return results
