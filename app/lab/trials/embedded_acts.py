"""What puts a disturbance into a filter on the embedded stage: each returns how long nothing was decided."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from fraud_filter.errors import FraudFilterError
from lab.harness.programs import generator_program
from lab.harness.sampler import Sampler
from lab.harness.waiting import let_pass, wait_until
from lab.trials.embedded import START_S, Relay
from lab.trials.gap import FlaggedTail, Gap
from lab.trials.plan import Trial

#: How long all processes of a filter are frozen, in seconds.
_FROZEN_S = 2.0
#: Deadline for each 1,000 records of an outage, in seconds.
_OUTAGE_S_PER_1000 = 2.0
#: More than any machine sends: what comes in during an outage is written as fast as can be.
_FULL_SPEED = 1e6

Act = Callable[[Relay, Trial, FlaggedTail], Gap]


def stop(relay: Relay, trial: Trial, tail: FlaggedTail) -> Gap:
    """Stops the active filter (SIGTERM)."""
    relay.filters[0].stop_cleanly()
    relay.go_on(trial)
    relay.await_fresh(tail, time.time())
    return tail.longest


def kill(relay: Relay, trial: Trial, tail: FlaggedTail) -> Gap:
    """Kills Python and Java of the active filter at one moment."""
    at = relay.filters[0].kill()
    relay.go_on(trial)
    return relay.await_fresh(tail, at)


def kill_java(relay: Relay, _: Trial, tail: FlaggedTail) -> Gap:
    """Kills Spark's Java alone, without warning."""
    return relay.await_fresh(tail, relay.filters[0].signal_java(signal.SIGKILL))


def hang_java(relay: Relay, _: Trial, tail: FlaggedTail) -> Gap:
    """Stops Spark's Java (SIGSTOP), as one that hangs."""
    return relay.await_fresh(tail, relay.filters[0].signal_java(signal.SIGSTOP))


def freeze(relay: Relay, _: Trial, tail: FlaggedTail) -> Gap:
    """Stops Python and Java, and lets them go on: on a local disk the filter has kept the lock.

    Raises:
        FraudFilterError: another filter worked meanwhile.
    """
    with relay.filters[0].frozen():
        let_pass(_FROZEN_S, relay.programs)
        for standby in relay.filters[1:]:
            if not standby.is_waiting:
                raise FraudFilterError(f"{standby.child.name} took over from a filter that was frozen")
    return relay.await_fresh(tail, time.time())


def thaw(relay: Relay, trial: Trial, tail: FlaggedTail) -> Gap:
    """Stops Python and Java until a standby decides, then lets them go on, as a machine that was cut off.

    Raises:
        FraudFilterError: there is no standby, or the checkpoint lies on a local disk.
    """
    if not trial.standby or relay.scene.stack.settings.checkpoint_directory:
        raise FraudFilterError("thaw needs a standby, and --below on another file system: a local lock is kept")
    former = relay.filters[0]
    with former.frozen():
        gap = relay.await_fresh(tail, time.time())
    wait_until(lambda: former.is_waiting, START_S, f"{former.child.name} does not wait", relay.programs)
    return gap


def hand_over(relay: Relay, trial: Trial, tail: FlaggedTail) -> Gap:
    """Has a filter with other settings, rules or mode take over at a commit: a new one, or in turn one that waits."""
    former, number = relay.filters[0], len(list(relay.scene.stack.workspace.path.glob("rules-*.yml")))
    if trial.disturbance == "handover":
        relay.changes["linger_ms"] = 1 - relay.changes.get("linger_ms", 0)
    elif trial.disturbance == "rules":
        relay.changes["rules"] = relay.scene.stack.workspace.path / f"rules-{number}.yml"
        relay.changes["rules"].write_text(f"rules:\n  - name: next-{number}\n    when: amount > 0.{number:03}\n")
    if len(relay.filters) > 1:
        following = relay.filters[1]
        following.ask()
    else:
        following = relay.add(trial, handover=True)
    others = [child for child in relay.programs if child is not former.child]
    has_begun = lambda: following.last_told == "started"  # noqa: E731
    wait_until(has_begun, START_S + relay.longest_batch_s, f"{following.child.name} did not start", others)
    relay.filters.remove(former)
    try:
        relay.await_fresh(tail, time.time())
        if trial.in_turn:
            relay.filters.append(former)  # it gets warm, and waits
        else:
            former.end_handed_over(others)
    except BaseException:
        former.stop()
        raise
    return tail.longest


def outage(relay: Relay, trial: Trial, _: FlaggedTail) -> Gap:
    """Stops the filter, lets payments come in, and has another one decide them while more come."""
    scene = relay.scene
    relay.filters[0].stop_cleanly()
    timeout_s = 60 + trial.records / 1000 * _OUTAGE_S_PER_1000
    with generator_program(scene.stack, rate=_FULL_SPEED, count=trial.records, log="outage.log") as generator:
        if generator.wait(timeout_s) != 0:
            lines = "\n".join(generator.tail(5))
            raise FraudFilterError(f"{trial.records} payments were not written in {timeout_s:.0f} s:\n{lines}")
    waiting, decided = scene.topic.end_offsets(), scene.probe.snapshot().source_offsets
    began = time.monotonic()
    relay.go_on(trial)
    child = relay.filters[0].child
    with Sampler({"filter": child}) as sampler:
        has_begun = lambda: scene.probe.snapshot().source_offsets != decided  # noqa: E731
        wait_until(has_begun, START_S, f"{child.name} decided nothing", relay.programs)
        first = time.monotonic()
        relay.await_decisions(waiting, timeout_s)
        seconds = time.monotonic() - first
    peak_mib = sampler.peak_rss_mib("filter")
    details = {"records_per_s": round(trial.records / seconds), "peak_mib": peak_mib and round(peak_mib)}
    return Gap(round(first - began, 1), round(seconds, 1), details)
