"""The same on a throwaway Compose stack whose standby has workers of its own. Needs a Docker Engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from fraud_filter.audit.result import AuditResult
from fraud_filter.audit.run import audit
from fraud_filter.compose.checkpoint_copy import recorded_by
from fraud_filter.compose.moving import replicas
from fraud_filter.compose.moving.switching import roll_out, switch
from fraud_filter.config import ModeName, Settings
from fraud_filter.errors import FraudFilterError
from lab.faults.kills import kill_containers
from lab.harness.compose_stack import ComposeStack, Say, compose_stack
from lab.harness.outcome import Audited
from lab.takeover.gap import Gap, open_tail
from lab.takeover.result import Interruption, What, describe

#: Deadlines in seconds.
_READY_S = 400.0
_STEP_S = 300.0
_DECIDED_S = 120.0
_SETTLE_S = 1.0
#: Executors whose driver was killed decide on for some moments: the first decision after a kill tells nothing.
_DYING_S = 5.0
_LINGER = "FRAUD_LINGER_MS"
#: What can be measured here.
KINDS: tuple[What, ...] = ("kill", "handover", "switch")


def run_on_compose(
    settings: Settings,
    whats: Sequence[What],
    modes: Sequence[ModeName],
    *,
    tries: int,
    rate: float,
    seconds: float,
    say: Say,
) -> list[Interruption]:
    """Brings up a stack with a standby in each mode, interrupts the active filter, and takes it down.

    Args:
        settings: `continuous_interval`, `real_time_duration` and `standby_warm_up_s` are the filters'.
        whats: kinds of interruption, of `KINDS`.
        tries: interruptions of each kind in each mode.
        rate: payments per second, all the time.
        seconds: under load before each interruption.

    Raises:
        FraudFilterError: a stack could not be brought up.
        UsageError: no Docker Engine answers.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP.
    """
    changes = {
        "STANDBY": "1",
        "FRAUD_CONTINUOUS_INTERVAL": settings.continuous_interval,
        "FRAUD_REAL_TIME_DURATION": settings.real_time_duration,
        "FRAUD_STANDBY_WARM_UP_S": f"{settings.standby_warm_up_s:g}",
    }
    results: list[Interruption] = []
    for mode in modes:
        with compose_stack(mode, rate, say, **changes) as stage:
            pair = Pair(stage, mode, seconds)
            for what in whats:
                for _ in range(tries):
                    results.append(pair.interrupt(what))
                    say(describe(results[-1]))
                    if results[-1].error:
                        stage.keep_logs(f"{mode}-{what}")
                        break
    return results


class Pair:
    """An active filter and a standby."""

    def __init__(self, stage: ComposeStack, mode: ModeName, seconds: float) -> None:
        self._stage, self._mode, self._seconds = stage, mode, seconds
        self._audited: AuditResult | None = None

    def interrupt(self, what: What) -> Interruption:
        """One interruption, once both filters are ready; one that fails is told in the result."""
        stage, how = self._stage, {"kill": self._kill, "handover": self._hand_over, "switch": self._switch}[what]
        try:
            stage.await_ready(_READY_S)
            time.sleep(self._seconds)
            gap = how()
            end = stage.ends()
            stage.await_decisions(end, _DECIDED_S)
            recorded = recorded_by(stage.stack, stage.settings)
            found = audit(stage.settings, end=end, settle_s=_SETTLE_S, recorded=recorded)
        except FraudFilterError as error:
            return Interruption(what, self._mode, standby=True, stack=True, error=str(error))
        before, self._audited = self._audited, found
        counts = Audited.of(found, before)
        return Interruption(what, self._mode, True, gap.seconds, gap.every_partition_s, counts, stack=True)

    def _kill(self) -> Gap:
        stage = self._stage
        with open_tail(stage.settings) as tail:
            active = replicas.active(stage.stack)
            if active is None:
                raise FraudFilterError("no filter of the stack is active")
            tail.await_fresh(time.time(), _STEP_S, lambda: None)
            kill_containers(active)(stage)
            tail.await_fresh(time.time() + _DYING_S, _STEP_S, lambda: None)
            return tail.longest

    def _hand_over(self) -> Gap:
        stack = self._stage.stack
        stack.change(_LINGER, "1" if stack.value(_LINGER) == "0" else "0")
        return self._while(lambda: roll_out(stack, _STEP_S))

    def _switch(self) -> Gap:
        stack = self._stage.stack
        other = "real-time" if self._mode == "micro-batch" else "micro-batch"
        mode = other if stack.value("FRAUD_MODE") == self._mode else self._mode
        return self._while(lambda: switch(stack, mode, _STEP_S))

    def _while(self, act: Callable[[], object]) -> Gap:
        """The longest time between two decisions while it acts, and until decisions have come after that."""
        with open_tail(self._stage.settings) as tail, ThreadPoolExecutor(1) as aside:
            done = aside.submit(act)
            while not done.done():
                tail.read()
            done.result()
            tail.await_fresh(time.time(), _STEP_S, lambda: None)
            return tail.longest
