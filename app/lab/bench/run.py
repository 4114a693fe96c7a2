"""The whole bench: the embedded stack, the contenders round by round, and the results as a report."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError, UsageError
from lab.bench.contenders import CONTENDERS, FLOOR, Contender
from lab.bench.launch import Watch, unwatched
from lab.bench.names import KNOBS
from lab.bench.plan import DRIFT, Load, in_rounds
from lab.bench.report import Report
from lab.bench.result import MOST_STOLEN, StartResult
from lab.bench.start import Start
from lab.bench.table import describe_start
from lab.harness.embedded_stack import EmbeddedStack, Say, embedded_stack, task_slots
from lab.harness.machine import describe_machine
from lab.harness.processes import Child, stop_signals
from lab.harness.workspace import Workspace

#: On the core of that number, whenever nothing else wants it (`SCHED_IDLE`, sched(7)).
_BUSY = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
while True:
    pass
"""


def run_bench(
    contenders: Sequence[Contender], load: Load, settings: Settings, say: Say, *, rounds: int, repeats: int, awake: bool
) -> Report:
    """Runs the bench; everything that it started is stopped when it returns, and also when it is interrupted.

    Args:
        rounds: each starts every contender once.
        repeats: how often a start may be done again that others have disturbed.
        awake: keep the cores from sleeping meanwhile.

    Raises:
        UsageError: there are fewer rules than a contender asks for, or the cores can't be kept from sleeping here.
        FraudFilterError: the stack could not be started, or a contender's model not be trained.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP.
    """
    slots = task_slots(max(one.partitions or load.partitions for one in contenders))
    with (
        stop_signals(),
        embedded_stack("bench", settings, say, slots=slots) as stack,
        cores_awake(stack.workspace) if awake else nullcontext(),
    ):
        for contender in contenders:
            contender.shared(stack)  # what has to be made for them is there before the first round
        _warm_up_broker(stack, load)
        report = run_rounds(stack, contenders, load, rounds=rounds, repeats=repeats)
        facts = {"cores_kept_awake": "yes" if awake else "no", "sent_share_of_rate": DRIFT}
        return replace(report, settings={**report.settings, **facts})


def run_rounds(
    stack: EmbeddedStack,
    contenders: Sequence[Contender],
    load: Load,
    *,
    rounds: int = 1,
    repeats: int = 0,
    watch: Watch = unwatched,
    ended: Callable[[StartResult], None] = lambda _: None,
) -> Report:
    """Starts each contender once a round, and keeps the logs when something went wrong.

    A start that fails is recorded with its reason; the next one runs all the same.

    Args:
        watch: sees each start from beside.
        ended: is told of each start that counts.
    """
    began, starts = time.monotonic(), list[StartResult]()
    for number, contender in in_rounds(contenders, rounds):
        run = partial(_run, stack, contender, load, number, watch)
        starts.append(run_undisturbed(run, repeats, stack.say))
        for line in describe_start(starts[-1]):
            stack.say(line)
        ended(starts[-1])
    report = Report(
        starts=starts,
        load=load,
        words={one.name: one.words for one in contenders},
        versions=dict(stack.versions) | {name: v for one in contenders for name, v in one.versions().items()},
        machine=describe_machine(),
        settings={"rounds": rounds, "repeats": repeats, **_describe(load, stack.settings)},
        took_s=time.monotonic() - began,
    )
    if not report.ok:
        stack.workspace.keep_logs()
    return report


def _run(stack: EmbeddedStack, contender: Contender, load: Load, number: int, watch: Watch, again: int) -> StartResult:
    return Start(stack, contender, load, number, again=again, watch=watch).run()


def _describe(load: Load, settings: Settings) -> Mapping[str, Any]:
    rates = ", ".join(f"{rate:g}" for rate in load.rates)
    knobs = {knob: getattr(settings, knob) for knob in ("spark_master", *KNOBS)}
    return {**asdict(load), "rates": rates, "rules": settings.rules.name, **knobs}


def _warm_up_broker(stack: EmbeddedStack, load: Load) -> None:
    """A start of the floor without rates, so that the first contender does not meet a cold broker.

    With the shipped rules and schema: the floor can't have all that the filter can.

    Raises:
        FraudFilterError: it failed.
    """
    stack.say("warming up the broker")
    shipped = {
        name: Settings.model_fields[name].get_default(call_default_factory=True) for name in ("rules", "payment_schema")
    }
    floor = replace(CONTENDERS[FLOOR], label="warm-up")
    warmed = Start(stack.with_settings(shipped), floor, replace(load, rates=()), 0).run()
    if warmed.error:
        raise FraudFilterError(f"the broker could not be warmed up: {warmed.error}")


def run_undisturbed(run: Callable[[int], StartResult], repeats: int, say: Say) -> StartResult:
    """The first start of which others took no more than `MOST_STOLEN`; when there is none, the least disturbed one.

    A hypervisor shares cores between its guests. What decides is the machine's own count and never a start's figures.
    A start that failed, or whose audit found something, is not put aside.

    Args:
        run: starts and measures; its argument is how often that was done before.
        repeats: how often it may be done again.
    """
    tried: list[StartResult] = []
    for again in range(repeats + 1):
        start = replace(run(again), repeated=again)
        if not start.ok:
            return start
        tried.append(start)
        share = start.stolen_share or 0.0
        if share <= MOST_STOLEN:
            break
        end = "it is started again" if again < repeats else "the least disturbed start counts"
        say(f"round {start.round}, {start.contender}: others took {share:.0%} of the processor time, {end}")
    return replace(min(tried, key=lambda start: start.stolen_share or 0.0), repeated=len(tried) - 1)


@contextmanager
def cores_awake(workspace: Workspace) -> Iterator[None]:
    """One busy process for each core that we may use, which gives way to any other at once.

    A core with nothing to do sleeps, and to wake it takes time: a few microseconds on bare metal, a good deal more
    where that is a call of the hypervisor. At 100 payments/s each of a payment's ways between threads begins so. What
    `idle=poll` does for a machine (Linux, admin-guide/pm/cpuidle), this does for a while and without a restart.

    Raises:
        UsageError: this is not Linux.
    """
    if sys.platform != "linux":
        raise UsageError("argument --awake: only Linux' cores can be kept from sleeping: leave it out")
    with ExitStack() as stack:
        for core in sorted(os.sched_getaffinity(0)):
            argv = [sys.executable, "-c", _BUSY, str(core)]
            stack.enter_context(Child(f"what keeps core {core} awake", argv, log=workspace.logs / "awake.log"))
        yield
