"""Trials on a Compose stack of its own, under load, with an audit after each."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fraud_filter.audit.result import AuditResult
from fraud_filter.audit.run import audit
from fraud_filter.compose.checkpoint_copy import recorded_by
from fraud_filter.compose.rollout import samples, switch
from fraud_filter.compose.stack import FILTER, STANDBY, start
from fraud_filter.config import ModeName
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.consumer import has_passed
from lab.harness.compose_stack import ComposeStack, Offsets
from lab.harness.outcome import Audited
from lab.harness.waiting import wait_until
from lab.trials.gap import open_tail
from lab.trials.plan import Trial
from lab.trials.result import Outcome
from lab.trials.stack_acts import Effect, StackAct
from lab.trials.witness import Witness

#: Deadlines in seconds.
_SWITCH_S = 300.0
_STEADY_S = 400.0
_RECOVER_S = 400.0
_COMMIT_S = 300.0
_SETTLE_S = 1.0
#: Decisions that stop again so shortly after they came were no recovery; and how late they may be when they go on.
_SURE_S = 5.0
_LATE_S = 10.0
#: A commit that takes longer is told: epochs take 5 s, batches of real-time mode one minute here.
_COMMIT_LATE_S = 75.0
_LOOK_S = 0.5


class StackRun:
    """Trials on one stack."""

    def __init__(self, stage: ComposeStack, seconds: float) -> None:
        self.stage = stage
        self._seconds = seconds
        #: What was committed for sure, by partition.
        self._floor: Offsets = {}

    def run(self, trial: Trial, act: StackAct, limit_s: float | None) -> Outcome:
        """Goes to the trial's mode, waits until the stack is well, and disturbs it. A failure is part of the result.

        Raises:
            FraudFilterError: the stack does not come back, so that nothing further can be tried.
        """
        self.change_mode(trial.mode)
        self.steady()
        outcome = self.disturb(trial, act, limit_s)
        self.stage.say(str(outcome))
        if not outcome.ok:
            self.stage.keep_logs(f"{trial.mode}-{trial.disturbance}{'-standby' if trial.standby else ''}")
        return outcome

    def change_mode(self, mode: ModeName) -> None:
        """Switches to the mode, where it is another one."""
        if self.stage.stack.value("FRAUD_MODE") != mode:
            switch(self.stage.stack, mode, _SWITCH_S)

    def steady(self) -> None:
        """Waits until the stack is healthy and decides payments; recreates it, once, when it does not get there.

        Raises:
            FraudFilterError: it does not get there then, either.
        """
        try:
            self._await_steady()
        except FraudFilterError as error:
            self.stage.say(f"the stack is recreated on its data: {error}")
            start(self.stage.stack, ["--force-recreate"], self.stage.stack.services(), _SWITCH_S)
            self._await_steady()

    def _await_steady(self) -> None:
        stack = self.stage.stack
        self.stage.await_ready(_STEADY_S)
        if stack.has_standby:  # a container whose Java was killed is healthy for some time yet
            wait_until(self._one_waits, _STEADY_S, "no standby is ready")
        self.stage.await_decisions(self.stage.ends(), _STEADY_S)

    def _one_waits(self) -> bool:
        """Whether a filter waits, warm, beside the active one."""
        shown = (sample for replica in (FILTER, STANDBY) for sample in samples(self.stage.stack, replica))
        return any(one.value and one.labels["state"] == "standby" for one in shown if one.name == "fraud_filter_state")

    def disturb(self, trial: Trial, act: StackAct, limit_s: float | None = None) -> Outcome:
        """One trial in the mode that runs."""
        stage = self.stage
        time.sleep(self._seconds)
        self._floor |= stage.committed()
        first = {number: self._floor.get(number, 0) for number in stage.ends()}
        before = self._audit(trial, first, stage.ends(), settle_s=0)
        outcome = Outcome(trial, limit_s=limit_s)
        notes: list[str] = []
        stage.probe.lap()
        witness = Witness(stage)
        try:
            outcome = self._measure(outcome, act, first, before, notes)
        except FraudFilterError as error:
            outcome = replace(outcome, error=str(error))
        slowest_ms = stage.probe.lap().max_ms
        if slowest_ms is not None:
            notes.append(f"slowest decision {slowest_ms / 1000:.1f} s")
        return replace(outcome, seen_as=witness.told(notes))

    def _measure(
        self, outcome: Outcome, act: StackAct, first: Offsets, before: AuditResult, notes: list[str]
    ) -> Outcome:
        stage, trial = self.stage, outcome.trial
        with open_tail(stage.settings) as tail:
            tail.await_fresh(time.time(), _RECOVER_S)
            effect = act(stage, trial)
            seconds = self._recover(effect)
            if self._await_commit() > _COMMIT_LATE_S:
                notes.append(f"commits go on after {time.monotonic() - effect.since:.0f} s")
            end = stage.ends()
            stage.await_decisions(end, _RECOVER_S)
            tail.await_fresh(time.time(), _RECOVER_S)
        after = self._audit(trial, first, end, settle_s=_SETTLE_S)
        # Not less those of `before`, which were only not decided yet.
        counts = replace(Audited.of(after, before), lost=after.lost)
        return replace(outcome, gap_s=tail.longest.seconds, recovery_s=round(seconds, 1), audit=counts)

    def _audit(self, trial: Trial, first: Mapping[int, int], end: Mapping[int, int], settle_s: float) -> AuditResult:
        # Without it features would be expected of payments that came before the state began.
        recorded: Any = recorded_by(self.stage.stack, self.stage.settings)
        if recorded and not trial.warm:
            recorded = replace(recorded, losses=[], committed={})
        return audit(self.stage.settings, start=first, end=end, settle_s=settle_s, recorded=recorded)

    def _recover(self, effect: Effect) -> float:
        """Waits for fresh decisions that go on; returns the seconds since the disturbance, or since its end."""
        stage = self.stage
        time.sleep(max(0.0, effect.since + effect.grace_s - time.monotonic()))
        while True:
            stage.await_decisions(stage.ends(), _RECOVER_S)
            recovered = time.monotonic()
            time.sleep(_SURE_S)
            again = time.monotonic()
            stage.await_decisions(stage.ends(), _RECOVER_S)
            if time.monotonic() - again < _LATE_S:
                return recovered - effect.since

    def _await_commit(self) -> float:
        """Waits until what was decided is committed, too; returns the seconds that it took."""
        stage, began = self.stage, time.monotonic()
        ends = stage.ends()
        passed = lambda: has_passed(stage.committed(), ends)  # noqa: E731
        wait_until(passed, _COMMIT_S, "decisions come, and nothing was committed", every_s=_LOOK_S)
        return time.monotonic() - began
