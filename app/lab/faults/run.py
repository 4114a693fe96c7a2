"""Puts the faults in, one after the other in one mode after the other, and audits after each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fraud_filter.audit.result import AuditResult
from fraud_filter.audit.run import audit
from fraud_filter.compose.moving import replicas
from fraud_filter.compose.moving.switching import switch
from fraud_filter.compose.waiting import start
from fraud_filter.config import ModeName
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.consumer import has_passed
from lab.faults.catalogue import Fault
from lab.faults.effect import Effect
from lab.faults.result import Outcome
from lab.faults.witness import Witness
from lab.harness.compose_stack import ComposeStack, Offsets
from lab.harness.outcome import Audited
from lab.harness.waiting import wait_until

#: Deadlines in seconds.
_SWITCH_S = 300.0
_STEADY_S = 400.0
_RECOVER_S = 400.0
_COMMIT_S = 300.0
_ALERT_S = 60.0
_SETTLE_S = 1.0
#: Decisions that stop again so shortly after they came were no recovery; and how late they may be when they go on.
_SURE_S = 5.0
_LATE_S = 10.0
#: A commit that takes longer is told: epochs take 5 s, batches of real-time mode one minute here.
_COMMIT_LATE_S = 75.0
_LOOK_S = 0.5

_RECORDS_LOST = "FraudFilterRecordsLost"


class Run:
    """Faults on one stage."""

    def __init__(self, stage: ComposeStack, seconds: float) -> None:
        """`seconds`: under load before each fault."""
        self._stage = stage
        self._seconds = seconds
        #: What was committed for sure, by partition.
        self._floor: Offsets = {}

    def each(self, faults: Sequence[Fault], modes: Sequence[ModeName]) -> Iterator[Outcome]:
        """All faults in all modes. One that fails is part of the result.

        Raises:
            FraudFilterError: the stack does not come back, so that no further fault can be put in.
        """
        for mode in modes:
            switch(self._stage.stack, mode, _SWITCH_S)
            for fault in faults:
                self.steady()
                outcome = self.put_in(fault, mode)
                self._stage.say(describe(outcome))
                if not outcome.ok:
                    self._stage.keep_logs(f"{mode}-{fault.name}{'-standby' if outcome.standby else ''}")
                yield outcome

    def steady(self) -> None:
        """Waits until the stack is healthy and decides payments; recreates it, once, when it does not get there.

        Raises:
            FraudFilterError: it does not get there then, either.
        """
        try:
            self._await_steady()
        except FraudFilterError as error:
            self._stage.say(f"the stack is recreated on its data: {error}")
            start(self._stage.stack, ["--force-recreate"], self._stage.stack.services(), _SWITCH_S)
            self._await_steady()

    def _await_steady(self) -> None:
        stack = self._stage.stack
        self._stage.await_ready(_STEADY_S)
        if stack.has_standby:  # a container whose Java was killed is healthy for some time yet
            wait_until(lambda: replicas.one_waits(stack), _STEADY_S, "no standby is ready", ())
        self._stage.await_decisions(self._stage.ends(), _STEADY_S)

    def put_in(self, fault: Fault, mode: ModeName) -> Outcome:
        """One fault in the mode that runs."""
        stage = self._stage
        time.sleep(self._seconds)
        self._floor |= stage.committed()
        first = {number: self._floor.get(number, 0) for number in stage.ends()}
        before = audit(stage.settings, start=first, end=stage.ends())
        outcome = Outcome(fault.name, mode, limit_s=fault.limit_s, standby=stage.stack.has_standby)
        notes: tuple[str, ...] = ()
        stage.probe.lap()
        with Witness(stage) as witness:
            try:
                stage.say(f"{mode}: {fault.what}")
                effect = fault.inject(stage)
                notes = effect.notes
                seconds = self._recover(effect)
                notes += self._await_commit(effect)
                end = stage.ends()
                stage.await_decisions(end, _RECOVER_S)
                if effect.low:
                    witness.await_alert(_RECORDS_LOST, _ALERT_S)
                after = self._audit(first, end, effect)
                counts = Audited.of(after, None if effect.low else before)
                # Not less those of `before`, which were only not decided yet.
                counts = replace(counts, lost=after.lost + effect.unreported)
                outcome = replace(outcome, recovery_s=round(seconds, 1), audit=counts)
            except FraudFilterError as error:
                outcome = replace(outcome, error=str(error))
            slowest_ms = stage.probe.lap().max_ms
            late = () if slowest_ms is None else (f"slowest decision {slowest_ms / 1000:.1f} s",)
            return replace(outcome, seen_as=witness.told((*notes, *late)))

    def _recover(self, effect: Effect) -> float:
        """Waits for fresh decisions that go on; returns the seconds since the fault, or since its end."""
        stage = self._stage
        time.sleep(max(0.0, effect.since + effect.grace_s - time.monotonic()))
        while True:
            stage.await_decisions(stage.ends(), _RECOVER_S)
            recovered = time.monotonic()
            time.sleep(_SURE_S)
            again = time.monotonic()
            stage.await_decisions(stage.ends(), _RECOVER_S)
            if time.monotonic() - again < _LATE_S:
                return recovered - effect.since

    def _await_commit(self, effect: Effect) -> tuple[str, ...]:
        """Waits until what was decided is committed, too; tells when that took long.

        Raises:
            FraudFilterError: nothing is committed any more.
        """
        stage, began = self._stage, time.monotonic()
        ends = stage.ends()
        while not has_passed(stage.committed(), ends):
            if time.monotonic() - began > _COMMIT_S:
                raise FraudFilterError(f"decisions come, and nothing was committed within {_COMMIT_S:g} s")
            time.sleep(_LOOK_S)
        late = time.monotonic() - began > _COMMIT_LATE_S
        return (f"commits go on after {time.monotonic() - effect.since:.0f} s",) if late else ()

    def _audit(self, first: Mapping[int, int], end: Mapping[int, int], effect: Effect) -> AuditResult:
        """From what was committed before the fault, or from what was not removed."""
        start = {number: max(first.get(number, 0), effect.low.get(number, 0)) for number in end}
        return audit(self._stage.settings, start=start, end=end, settle_s=_SETTLE_S)


def describe(one: Outcome) -> str:
    """An outcome in a line."""
    head = f"{one.mode}: {one.fault}{' with a standby' if one.standby else ''}: "
    if one.error:
        return head + one.error
    counts = f"{one.audit.lost} lost, {one.audit.duplicated} duplicated"
    return f"{head}{counts}, decisions after {one.recovery_s} s; {one.seen_as}"
