"""Every disturbance, as data: its name, what happens, on which stage, and what puts it in and takes it out."""

from __future__ import annotations

from dataclasses import dataclass

from fraud_filter.errors import UsageError
from lab.harness.compose_stack import ACTIVE, ACTIVE_WORKER, BROKER, MASTER, WORKER
from lab.trials import embedded_acts, stack_acts
from lab.trials.embedded_acts import Act
from lab.trials.plan import StageName, Trial
from lab.trials.stack_acts import StackAct

#: What the stack holds to after the kill of a driver or of an executor, in seconds.
_LIMIT_S = 30.0
#: Disturbances at random for some minutes, of those on the stack that are repeatable.
RANDOM = "random"


@dataclass(frozen=True)
class Disturbance:
    """`embedded` and `stack` put it in and take it out again on that stage; None: it does not work there.

    `limit_s`: most seconds to fresh decisions on the stack; None where nothing is promised. `repeatable`: it leaves the
    stack as it was and loses nothing by design, so that it may come again and again. `beside`: it is tried on the stack
    with a standby, too; the others are about what a filter finds when it starts.
    """

    name: str
    what: str
    embedded: Act | None = None
    stack: StackAct | None = None
    limit_s: float | None = None
    repeatable: bool = True
    beside: bool = False


_DRIVER, _EXECUTOR = "SparkSubmit", "CoarseGrainedExecutorBackend"
DISTURBANCES = {
    one.name: one
    for one in (
        Disturbance(
            "kill", "kill -9 of all processes of the filter", embedded_acts.kill, stack_acts.kill_containers(ACTIVE),
            beside=True,
        ),
        Disturbance(
            "java-kill", "kill -9 of Spark's Java", embedded_acts.kill_java, stack_acts.signal_java(ACTIVE, _DRIVER),
            _LIMIT_S, beside=True,
        ),
        Disturbance(
            "hang", "Spark's Java hangs (SIGSTOP)", embedded_acts.hang_java,
            stack_acts.signal_java(ACTIVE, _DRIVER, "STOP"), beside=True,
        ),
        Disturbance("freeze", "all processes of the filter hang for 2 s, then go on", embedded_acts.freeze),
        Disturbance(
            "thaw", "all processes of the filter hang until a standby decides, then go on: Kafka's lock",
            embedded_acts.thaw,
        ),
        Disturbance("stop", "SIGTERM, and a filter is started at once", embedded_acts.stop),
        Disturbance(
            "handover", "a warm filter with another setting takes over", embedded_acts.hand_over, stack_acts.hand_over,
            repeatable=False, beside=True,
        ),
        Disturbance("rules", "a warm filter with other rules takes over", embedded_acts.hand_over),
        Disturbance(
            "switch", "a warm filter in another mode takes over", embedded_acts.hand_over, stack_acts.change_mode,
            repeatable=False, beside=True,
        ),
        Disturbance("outage", "the filter is stopped until --records have come in", embedded_acts.outage),
        Disturbance(
            "executor-kill", "kill -9 of an executor", None, stack_acts.signal_java(ACTIVE_WORKER, _EXECUTOR),
            _LIMIT_S, beside=True,
        ),
        Disturbance(
            "worker-kill", "kill -9 of the worker and its executor", None, stack_acts.kill_containers(ACTIVE_WORKER),
            beside=True,
        ),
        Disturbance(
            "master-kill", "kill -9 of the Spark master", None, stack_acts.kill_containers(MASTER), beside=True
        ),
        Disturbance(
            "cluster-kill", "kill -9 of master, worker and executor at once", None,
            stack_acts.kill_containers(MASTER, WORKER),
        ),
        Disturbance("broker-kill", "kill -9 of the broker, back after 20 s", None, stack_acts.stop_broker, beside=True),
        Disturbance("broker-pause", "the broker hangs for 20 s", None, stack_acts.pause(BROKER), beside=True),
        Disturbance(
            "worker-pause", "the worker and its executor hang for 20 s, then go on", None,
            stack_acts.pause(ACTIVE_WORKER), beside=True,
        ),
        Disturbance("network-cut", "no network between worker and broker for 20 s", None, stack_acts.cut_network),
        Disturbance("disk-full", "the checkpoint's disk is full for 20 s", None, stack_acts.fill_disk),
        Disturbance(
            "offsets-corrupt", "filter killed, newest entry of the offset log overwritten", None,
            stack_acts.damage(stack_acts.OVERWRITE, "offsets"),
        ),
        Disturbance(
            "commit-deleted", "filter killed, newest entry of the commit log deleted", None,
            stack_acts.damage(stack_acts.DELETE, "commits"),
        ),
    )
}  # fmt: skip


def choose(text: str, stage: StageName | None = None) -> list[str]:
    """The disturbances in a list such as "kill,hang" that work on the stage; all of the stage when it is "all".

    Raises:
        UsageError: there is no such disturbance, or it does not work on the stage.
    """
    known = [one.name for one in DISTURBANCES.values() if stage is None or getattr(one, stage)]
    if stage != "embedded":
        known.append(RANDOM)
    if text == "all":
        return [name for name in known if name not in (RANDOM, "handover", "switch", "thaw")]
    wanted = [name.strip() for name in text.split(",")]
    for name in wanted:
        if name not in known:
            where = {"stack": " with --stack", "embedded": " without --stack", None: ""}[stage]
            raise UsageError(f"argument DISTURBANCE: {name!r} is not accepted{where}: choose from {', '.join(known)}")
    if RANDOM in wanted and len(wanted) > 1:
        raise UsageError(f"argument DISTURBANCE: {RANDOM!r} stands alone: it draws from the others")
    return [name for name in known if name in wanted]


def on_stage(trial: Trial) -> bool:
    """Whether a trial can be run: on the stack some disturbances are tried without a standby alone."""
    if trial.stage == "embedded" or not trial.standby or trial.disturbance == RANDOM:
        return True
    return DISTURBANCES[trial.disturbance].beside
