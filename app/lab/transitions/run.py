"""Runs the changes, one after the other on one checkpoint while payments keep coming, and audits after each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from fraud_filter.audit.result import AuditResult
from fraud_filter.audit.run import audit
from fraud_filter.config import ModeName, duration_s
from fraud_filter.errors import FraudFilterError
from lab.harness.drain import drain
from lab.harness.embedded_stack import Scene
from lab.harness.outcome import Audited
from lab.harness.processes import Child
from lab.harness.waiting import let_pass, wait_until
from lab.transitions.filter_run import FilterRun
from lab.transitions.result import StopKind, Transition
from lab.transitions.route import Change

#: Deadlines in seconds: Spark's start takes about 10 s on 2 idle cores.
_START_S = 240
_DRAIN_S = 90
_SETTLE_S = 1.0


class Leg:
    """A checkpoint and the modes that run on it in turn; audited from its first payment on."""

    def __init__(self, scene: Scene, number: int, mode: ModeName) -> None:
        """Starts `mode` on an empty checkpoint; returns when it has read all that came in meanwhile."""
        self._scene = scene
        self._name = f"leg-{number}"
        self._runs = 0
        self._start = scene.topic.end_offsets()
        self._audited: AuditResult | None = None
        self.filter = self._run(mode)
        try:
            self._reach(scene.topic.end_offsets())
        except BaseException:
            self.stop()
            raise

    def change(self, mode: ModeName, stop: StopKind) -> Transition:
        """Lets it run, stops it, starts `mode`, or has it take over, lets that run, and audits.

        Raises:
            FraudFilterError: the new mode decides nothing in time, or a program ended.
        """
        scene, old = self._scene, self.filter.mode
        self._load()
        took = self._hand_over(mode) if stop == "handover" else self._start_again(mode, stop)
        self._load()
        end = drain(scene.topic, scene.probe.has_passed, _DRAIN_S, self._late, self._programs)
        found = audit(scene.stack.settings, start=self._start, end=end, settle_s=_SETTLE_S)
        before, self._audited = self._audited, found
        return Transition(old, mode, stop, self.filter.how, Audited.of(found, before), round(took, 1))

    def recover(self) -> float:
        """Lets it run and kills Spark's Java: seconds until a payment that came after that was decided.

        What that lost or repeated counts for the next change.

        Raises:
            FraudFilterError: no decision comes in time, or a program ended.
        """
        self._load()
        began = time.monotonic()
        self.filter.kill_java()
        self._reach(self._scene.topic.end_offsets())
        return round(time.monotonic() - began, 1)

    def stop(self) -> None:
        """Ends the running mode."""
        self.filter.stop("clean")

    def _start_again(self, mode: ModeName, stop: StopKind) -> float:
        """Stops the filter and starts another: seconds from the stop request to a decision about what came later."""
        began = time.monotonic()
        code = self.filter.stop(stop)
        if stop == "clean" and code != 0:
            raise FraudFilterError(f"{self.filter.child.name} did not stop cleanly: exit code {code}")
        stopped_at = self._scene.topic.end_offsets()
        self.filter = self._run(mode)
        self._reach(stopped_at)
        return time.monotonic() - began

    def _hand_over(self, mode: ModeName) -> float:
        """Has a warm filter take over at a commit: seconds from its lock to a decision about what came later."""
        former, self.filter = self.filter, self._run(mode, handover=True)
        try:
            batch_s = duration_s(self._scene.stack.settings.real_time_duration)
            has_lock = lambda: self.filter.last_told in ("taking_over", "started")  # noqa: E731
            wait_until(has_lock, _START_S + batch_s, f"{self.filter.child.name} did not take over", self._programs)
            began = time.monotonic()
            self._reach(self._scene.topic.end_offsets())
            took = time.monotonic() - began
            former.end_handed_over(self._programs)
        except BaseException:
            former.stop("clean")
            raise
        return took

    def _run(self, mode: ModeName, *, handover: bool = False) -> FilterRun:
        self._runs += 1
        log = f"{self._name}-{self._runs:02}-{mode}.log"
        run = FilterRun(self._scene.stack, mode, self._start, checkpoint=self._name, log=log, handover=handover)
        run.child.start()
        return run

    def _load(self) -> None:
        let_pass(self._scene.seconds, self._programs)

    def _reach(self, offsets: dict[int, int]) -> None:
        """Waits until a decision about a payment at or after `offsets` has come out of each partition."""
        wait_until(lambda: self._scene.probe.has_passed(offsets), _START_S, self._late, self._programs)

    @property
    def _late(self) -> str:
        return f"{self.filter.child.name} did not decide all payments"

    @property
    def _programs(self) -> tuple[Child, ...]:
        return (self._scene.stack.broker, self._scene.generator, self.filter.child)


def run_changes(scene: Scene, changes: Sequence[Change], stops: Sequence[StopKind]) -> list[Transition]:
    """All changes, with each kind of stop. A change that fails is part of the result, and a new leg begins after it."""
    results: list[Transition] = []
    leg: Leg | None = None
    legs = 0
    with ExitStack() as ending:
        for stop in stops:
            for old, new in changes:
                try:
                    if leg is None or leg.filter.mode != old:
                        if leg:
                            leg.stop()
                        legs += 1
                        scene.stack.say(f"{old}: starting on an empty checkpoint")
                        leg = None
                        leg = Leg(scene, legs, old)
                        ending.callback(leg.stop)
                    result = leg.change(new, stop)
                except FraudFilterError as error:
                    result = Transition(old, new, stop, error=str(error))
                    if leg:
                        leg.stop()
                        result = replace(result, how=leg.filter.how)
                    leg = None
                results.append(result)
                scene.stack.say(describe(result))
    return results


def describe(one: Transition) -> str:
    """A change in a line."""
    head = f"{one.old} to {one.new} ({one.stop})"
    if one.error:
        return f"{head}: {one.error}"
    return f"{head}: {one.audit.lost} lost, {one.audit.duplicated} duplicated, {one.seconds:g} s, {one.how}"
