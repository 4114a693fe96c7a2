"""The whole bench: the embedded stack, the contenders round by round, and the results as a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError
from lab.bench.contenders import CONTENDERS, STREAMS, Contender
from lab.bench.launch import Watch, unwatched
from lab.bench.names import KNOBS
from lab.bench.plan import DRIFT, Load, in_rounds
from lab.bench.report import Report
from lab.bench.result import StartResult
from lab.bench.start import Start
from lab.bench.streams import program as streams
from lab.bench.table import describe_start
from lab.harness.embedded_stack import EmbeddedStack, embedded_stack, task_slots
from lab.harness.java import Say
from lab.harness.machine import describe_machine
from lab.harness.processes import stop_signals


def run_bench(contenders: Sequence[Contender], load: Load, settings: Settings, say: Say, *, rounds: int) -> Report:
    """Runs the bench; everything that it started is stopped when it returns, and also when it is interrupted.

    Args:
        rounds: each starts every contender once.

    Raises:
        UsageError: there are more rules than a contender asks for.
        FraudFilterError: the stack could not be started, or a contender's model not be trained.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP.
    """
    slots = task_slots(max(one.partitions or load.partitions for one in contenders))
    with (
        stop_signals(),
        embedded_stack("bench", settings, say, slots=slots) as stack,
    ):
        for contender in contenders:
            contender.shared(stack)  # what has to be made for them is there before the first round
        _warm_up_broker(stack, load)
        return run_rounds(stack, contenders, load, rounds=rounds)


def run_rounds(
    stack: EmbeddedStack,
    contenders: Sequence[Contender],
    load: Load,
    *,
    rounds: int = 1,
    watch: Watch = unwatched,
    ended: Callable[[StartResult], None] = lambda _: None,
) -> Report:
    """Starts each contender once a round, and keeps the logs when something went wrong.

    A start that fails is recorded with its reason; the next one runs all the same.

    Args:
        watch: sees each start from beside.
        ended: is told of each start that has ended.
    """
    began, starts = time.monotonic(), list[StartResult]()
    for number, contender in in_rounds(contenders, rounds):
        starts.append(Start(stack, contender, load, number, watch).run())
        for line in describe_start(starts[-1]):
            stack.say(line)
        ended(starts[-1])
    report = Report(
        starts=starts,
        load=load,
        words={one.name: one.words for one in contenders},
        versions=dict(stack.versions) | {name: v for one in contenders for name, v in one.versions().items()},
        machine=describe_machine(),
        settings={"rounds": rounds, "sent_share_of_rate": DRIFT, **_describe(load, stack.settings)},
        took_s=time.monotonic() - began,
    )
    if not report.ok:
        stack.workspace.keep_logs()
    return report


def _describe(load: Load, settings: Settings) -> Mapping[str, Any]:
    rates = ", ".join(f"{rate:g}" for rate in load.rates)
    knobs = {knob: getattr(settings, knob) for knob in ("spark_master", *KNOBS)}
    return {**asdict(load), "rates": rates, "rules": settings.rules.name, **knobs}


def _warm_up_broker(stack: EmbeddedStack, load: Load) -> None:
    """A start of Kafka Streams without rates, so that the first contender does not meet a cold broker.

    With the shipped rules and schema: it has no others.

    Raises:
        FraudFilterError: it failed.
    """
    stack.say("warming up the broker")
    first = replace(CONTENDERS[STREAMS], label="warm-up")
    warmed = Start(stack.with_settings(streams.shipped()), first, replace(load, rates=()), 0).run()
    if warmed.error:
        raise FraudFilterError(f"the broker could not be warmed up: {warmed.error}")
