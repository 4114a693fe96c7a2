"""What puts a disturbance into the Compose stack, and takes it out again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from fraud_filter.compose.rollout import roll_out, switch
from fraud_filter.compose.stack import FILTER, execute
from lab.harness.compose_stack import BROKER, KEEPER, WORKER, ComposeStack
from lab.trials.plan import Trial

#: How long an outage lasts, in seconds.
OUTAGE_S = 20.0
_STEP_S = 300.0
_LINGER = "FRAUD_LINGER_MS"

#: Signals the Java processes whose command line has the word; fails when there is none.
_SIGNAL_JAVA = """
found=1
for process in /proc/[0-9]*; do
    if [ "$(cat "$process/comm" 2>/dev/null)" = java ] && grep -qs "$1" "$process/cmdline"; then
        kill "-$2" "${process#/proc/}" && found=0
    fi
done
exit $found
"""
#: All but the init process, which ends when its child does, and this shell.
_KILL_ALL = "kill -9 -1; true"
#: Other processes notice the death of a connection at once; this is much more. Executors whose driver was killed decide
#: on for some moments.
_GRACE_S = 2.0

#: By which the worker reaches the broker, and nothing else that it needs.
_NETWORK = "kafka"

_VOLUME = "/var/lib/fraud-filter"
#: Appends until nothing more fits, with smaller pieces at the end.
_FILL = f"for size in 1M 4k 1; do dd if=/dev/zero bs=$size >>{_VOLUME}/filler 2>/dev/null; done; df {_VOLUME} | tail -1"
#: How often: Spark removes files meanwhile, and what that frees is filled, too.
_REFILL_S = 0.5
_EMPTY = f"rm -f {_VOLUME}/filler"
#: The newest entry of a log; fails when it is empty.
_NEWEST = f"""cd {_VOLUME}/checkpoint/$1 && newest=$(ls | grep -E "^[0-9]+$" | sort -n | tail -1) && [ -n "$newest" ]"""
#: The first half of the entry, then what is no JSON, as a write that was torn leaves it. Its checksum stays.
OVERWRITE = f"""{_NEWEST} && size=$(wc -c <"$newest") && half=$(head -c $((size / 2)) "$newest") &&
    printf '%s\\377\\000torn' "$half" >"$newest" && echo "$newest"
"""
DELETE = f'{_NEWEST} && rm "$newest" && echo "$newest"'


@dataclass(frozen=True)
class Effect:
    """What putting a disturbance in came to.

    `since`: the moment from which recovery counts, on the monotonic clock: the disturbance itself, or an outage's end.
    `grace_s`: what came in so shortly after it may still have been decided by what is about to die, and proves nothing.
    """

    since: float = field(default_factory=time.monotonic)
    grace_s: float = 0.0


StackAct = Callable[[ComposeStack, Trial], Effect]


def signal_java(service: str, word: str, signal: str = "KILL") -> StackAct:
    """Kills the Java process of a service's container that has `word` in its command line, or stops it with `STOP`."""

    def act(stage: ComposeStack, _: Trial) -> Effect:
        effect = Effect(grace_s=_GRACE_S)
        stage.execute(service, _SIGNAL_JAVA, word, signal)
        return effect

    return act


def kill_containers(*services: str) -> StackAct:
    """Kills all processes of the services' containers; Docker restarts what it is told to."""

    def act(stage: ComposeStack, _: Trial) -> Effect:
        effect = Effect(grace_s=_GRACE_S)
        for service in services:
            execute(stage.container(service), "sh", "-c", _KILL_ALL)  # its own exit code goes with the container
        return effect

    return act


def stop_broker(stage: ComposeStack, _: Trial) -> Effect:
    """Kills the broker and starts it again; its own start is a part of the recovery."""
    broker = stage.container(BROKER)
    broker.kill()
    return _last(broker.start)


def pause(service: str) -> StackAct:
    """Freezes a service's container: connections stay open, and nothing answers; then all of it goes on."""

    def act(stage: ComposeStack, _: Trial) -> Effect:
        container = stage.container(service)
        container.pause()
        return _last(container.unpause)

    return act


def cut_network(stage: ComposeStack, _: Trial) -> Effect:
    """Takes the worker off the network by which it reaches the broker; driver and master stay in reach."""
    worker = stage.container(WORKER)
    network = stage.stack.client.networks.get(f"{stage.stack.name}_{_NETWORK}")
    aliases = worker.attrs["NetworkSettings"]["Networks"][network.name]["Aliases"]
    network.disconnect(worker)
    return _last(lambda: network.connect(worker, aliases=aliases))


def fill_disk(stage: ComposeStack, _: Trial) -> Effect:
    """Fills the checkpoint's file system, keeps it full for a while, and frees it."""
    until = time.monotonic() + OUTAGE_S
    try:
        while time.monotonic() < until:
            stage.execute(KEEPER, _FILL)
            time.sleep(_REFILL_S)
    finally:
        stage.execute(KEEPER, _EMPTY)
    return Effect()


def damage(script: str, log: str) -> StackAct:
    """Kills the filter, has a script damage the newest entry of one of its checkpoint's logs, starts the filter."""

    def act(stage: ComposeStack, _: Trial) -> Effect:
        container = stage.container(FILTER)
        container.kill()
        try:
            stage.execute(KEEPER, script, log)
        finally:
            effect = Effect()
            container.start()
        return effect

    return act


def _last(end: Callable[[], object]) -> Effect:
    """Lets an outage last, and ends it."""
    try:
        time.sleep(OUTAGE_S)
    finally:
        effect = Effect()
        end()
    return effect


def hand_over(stage: ComposeStack, _: Trial) -> Effect:
    """Rolls out another setting, by a handover to the standby."""
    stack = stage.stack
    stack.change(_LINGER, "1" if stack.value(_LINGER) == "0" else "0")
    roll_out(stack, _STEP_S)
    return Effect()


def change_mode(stage: ComposeStack, trial: Trial) -> Effect:
    """Switches to another mode, by a handover to the standby."""
    switch(stage.stack, trial.to, _STEP_S)
    return Effect()
