"""A stack under load for a long time, disturbed when a seed says so."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fraud_filter.audit.run import audit
from lab.harness.outcome import Audited
from lab.trials.catalogue import DISTURBANCES
from lab.trials.plan import Trial
from lab.trials.result import Outcome
from lab.trials.stack import StackRun

#: Seconds from one disturbance to the next, and quiet ones at the end: an hour has eleven and more.
_LEAST_S, _MOST_S = 60.0, 300.0
_QUIET_S = 45.0
_DRAIN_S = 240.0
_SETTLE_S = 2.0


@dataclass(frozen=True)
class Due:
    """A disturbance, `at_s` seconds after the start."""

    at_s: float
    name: str


def draw(seed: int, seconds: float, names: Sequence[str]) -> list[Due]:
    """Disturbances at random intervals for `seconds`; the same for a seed. At least one, however short it is.

    Each comes once before any comes again, so that an hour has seen nearly all.
    """
    chance = random.Random(seed)
    due: list[Due] = []
    deck: list[str] = []
    at_s = min(chance.uniform(_LEAST_S, _MOST_S), seconds / 3)
    while not due or at_s < seconds - _QUIET_S:
        if not deck:
            deck = list(names)
            chance.shuffle(deck)
        due.append(Due(round(at_s, 1), deck.pop()))
        at_s += chance.uniform(_LEAST_S, _MOST_S)
    return due


def run_random(run: StackRun, trials: Sequence[Trial]) -> Outcome:
    """Lets the stack run for the trials' minutes, in each one's mode for an equal share of them.

    Returns:
        an outcome: the audit of all of it, with each disturbance in its details.

    Raises:
        FraudFilterError: the stack did not come back after a disturbance.
    """
    whole, stage = trials[0], run.stage
    seconds = whole.minutes * 60
    acts = {
        one.name: one.stack
        for one in DISTURBANCES.values()
        if one.stack and one.repeatable and (one.beside or not whole.standby)
    }
    due = draw(whole.seed, seconds, [*acts])
    found: list[dict[str, Any]] = []
    failed: list[str] = []
    began = time.monotonic()
    for number, trial in enumerate(trials, 1):
        until = began + seconds * number / len(trials)
        run.change_mode(trial.mode)
        # Where one took longer than to the next, what is left when the time is over comes no more.
        while due and began + due[0].at_s < until and time.monotonic() < until:
            one = due.pop(0)
            time.sleep(max(0.0, began + one.at_s - time.monotonic()))
            at_s = round(time.monotonic() - began, 1)
            own = Trial(one.name, trial.mode, trial.mode, trial.standby, "stack", seed=whole.seed)
            # How soon decisions come back is the matter of a trial of this disturbance alone.
            outcome = run.run(own, acts[one.name], None)
            found.append({"due_s": one.at_s, "at_s": at_s, **outcome.to_dict()})
            failed += [] if outcome.ok else [f"{one.name} after {at_s:.0f} s"]
        time.sleep(max(0.0, until - time.monotonic()))
    end = stage.ends()
    stage.await_decisions(end, _DRAIN_S)
    all_of_it = audit(stage.settings, start=dict.fromkeys(end, 0), end=end, settle_s=_SETTLE_S)
    details = {"payments": all_of_it.payments, "trials": found}
    seen = f"{len(found)} disturbances in {whole.minutes:g} min, seed {whole.seed}"
    return Outcome(whole, audit=Audited.of(all_of_it), seen_as=seen, error="; ".join(failed), details=details)
