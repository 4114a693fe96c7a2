"""Runs a soak: faults when they are due, samples all the time, an audit of everything at the end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from fraud_filter.audit.run import audit
from fraud_filter.compose.moving.switching import switch
from fraud_filter.config import ModeName
from lab.faults.catalogue import FAULTS
from lab.faults.result import Outcome
from lab.faults.run import Run, describe
from lab.harness.compose_stack import ComposeStack
from lab.soak.result import Soak
from lab.soak.samples import Sampler
from lab.soak.schedule import Due, draw
from lab.soak.trend import find_trends

_SWITCH_S = 300.0
_DRAIN_S = 240.0
_SETTLE_S = 2.0


def soak(stage: ComposeStack, modes: Sequence[ModeName], *, minutes: float, seed: int, rate: float) -> Soak:
    """Lets the stage run for `minutes`, in each mode for an equal share of them.

    Raises:
        FraudFilterError: the stack did not come back after a fault.
    """
    names = [fault.name for fault in FAULTS if fault.repeatable]
    plan = draw(seed, minutes * 60, names)
    run = Run(stage, 0.0)
    faults: list[tuple[Due, float, Outcome]] = []
    began = time.monotonic()
    with Sampler(stage) as sampler:
        for number, mode in enumerate(modes, 1):
            until = began + minutes * 60 * number / len(modes)
            switch(stage.stack, mode, _SWITCH_S)
            # Where a fault took longer than to the next, what is left when the time is over comes no more.
            while plan and began + plan[0].at_s < until and time.monotonic() < until:
                due = plan.pop(0)
                time.sleep(max(0.0, began + due.at_s - time.monotonic()))
                run.steady()
                at_s = round(time.monotonic() - began, 1)
                fault = next(fault for fault in FAULTS if fault.name == due.fault)
                # How soon decisions come back is the matter of `fraud-filter faults`.
                outcome = run.put_in(replace(fault, limit_s=None), mode)
                faults.append((due, at_s, outcome))
                stage.say(f"{at_s:.0f} s, {describe(outcome)}")
                if not outcome.ok:
                    stage.keep_logs(f"{at_s:.0f}-{due.fault}")
            time.sleep(max(0.0, until - time.monotonic()))
        end = stage.ends()
        stage.await_decisions(end, _DRAIN_S)
    found = audit(stage.settings, start=dict.fromkeys(end, 0), end=end, settle_s=_SETTLE_S)
    return Soak(seed, minutes, rate, faults, found, find_trends(sampler.lives))
