"""Runs trials on their stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fraud_filter.config import Settings, env_name
from fraud_filter.errors import FraudFilterError
from fraud_filter.home import HOME
from lab.harness.compose_stack import compose_stack
from lab.harness.embedded_stack import Scene
from lab.harness.java import Say
from lab.harness.programs import environment
from lab.trials.at_random import run_random
from lab.trials.catalogue import DISTURBANCES, RANDOM
from lab.trials.embedded import Relay, open_scene
from lab.trials.plan import SETTINGS, Trial
from lab.trials.result import Outcome
from lab.trials.stack import StackRun

#: Batches of real-time mode that end now and then: each restart reads again what came in since the last end.
_STACK_BATCH = "1 minute"
_HANG_TIMEOUT_S = 5.0
_FIELDS = Settings.model_fields


def run_trials(
    settings: Settings, trials: Sequence[Trial], *, rate: float, seconds: float, below: str, say: Say
) -> Iterator[Outcome]:
    """Starts what the trials need, runs them, and stops everything. One that fails is part of the result.

    Args:
        rate: payments per second, all the time.
        seconds: under load before each disturbance.
        below: where the embedded stage's checkpoints go; on this machine's disk when it is empty.

    Raises:
        FraudFilterError: a stage could not be started, or the stack did not come back after a disturbance.
        UsageError: no Docker Engine answers.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP.
    """
    if trials[0].stage == "embedded":
        with open_scene(settings, rate=rate, seconds=seconds, below=below, say=say) as scene:
            yield from run_embedded(scene, trials)
        return
    for standby in dict.fromkeys(trial.standby for trial in trials):
        chosen = [trial for trial in trials if trial.standby == standby]
        own = _stack_settings(settings, standby=standby)
        with compose_stack(chosen[0].mode, rate, say, settings.query, **own) as stage:
            run = StackRun(stage, seconds)
            if chosen[0].disturbance == RANDOM:
                yield run_random(run, chosen)
                continue
            for trial in chosen:
                one = DISTURBANCES[trial.disturbance]
                if one.stack:
                    yield run.run(trial, one.stack, one.limit_s)


def _stack_settings(settings: Settings, *, standby: bool) -> dict[str, str]:
    shorter = {"real_time_duration": _STACK_BATCH, **({"hang_timeout_s": _HANG_TIMEOUT_S} if standby else {})}
    unset = {name: text for name, text in shorter.items() if getattr(settings, name) == _FIELDS[name].default}
    given = environment(settings.model_copy(update=unset))
    rules = settings.rules.resolve().relative_to(HOME).as_posix()
    return {**{name: given[name] for name in map(env_name, SETTINGS)}, "FRAUD_RULES": rules, "STANDBY": f"{standby:d}"}


def run_embedded(scene: Scene, trials: Sequence[Trial]) -> Iterator[Outcome]:
    """The trials one after the other, on one checkpoint as long as they fit to each other.

    One that fails is part of the result, and the next one begins on an empty checkpoint.
    """
    acts = {one.name: one.embedded for one in DISTURBANCES.values() if one.embedded}
    relay: Relay | None = None
    try:
        for number, trial in enumerate(trials, 1):
            try:
                if relay is None or not relay.fits(trial):
                    former, relay = relay, None
                    if former:
                        former.stop()
                    relay = Relay(scene, trial, number)
                outcome = relay.disturb(trial, acts[trial.disturbance])
            except FraudFilterError as error:
                outcome = Outcome(trial, error=str(error))
                if relay:
                    relay.stop()
                relay = None
            if not outcome.ok:
                scene.stack.workspace.keep_logs()
            scene.stack.say(str(outcome))
            yield outcome
    finally:
        if relay:
            relay.stop()
