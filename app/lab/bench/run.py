"""The whole bench: the embedded stack, the contenders round by round, and the results as a report."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError
from lab.bench.closed_loop import measure_broker
from lab.bench.contenders import CONTENDERS, Contender
from lab.bench.launch import Watch, shipped, unwatched
from lab.bench.names import KNOBS
from lab.bench.plan import DRIFT, Load
from lab.bench.plans import plan_contenders
from lab.bench.report import Report
from lab.bench.result import StartResult
from lab.bench.start import Start
from lab.bench.table import describe_start
from lab.harness.embedded_stack import EmbeddedStack, embedded_stack
from lab.harness.java import Say
from lab.harness.machine import describe_machine

_Item = TypeVar("_Item")


def run_bench(contenders: Sequence[Contender], load: Load, settings: Settings, say: Say, *, rounds: int) -> Report:
    """Runs the bench; everything that it started is stopped when it returns, and also when it is interrupted.

    Args:
        rounds: each starts every contender once; as many more are run at most because a start was disturbed.
    """
    most = max(one.partitions or load.partitions for one in contenders) + settings.velocity_partitions
    with embedded_stack("bench", settings, say, partitions=most) as stack:
        able, plans = plan_contenders(stack, contenders)
        _warm_up_broker(stack, load)
        broker = measure_broker(stack)
        report = run_rounds(stack, able, load, rounds=rounds, most_repeats=rounds)
        files = {one.name: stack.workspace.path / f"{one.label}-1.plan" for one in able}
        plans |= {name: file.read_text(encoding="utf-8") for name, file in files.items() if file.exists()}
        return replace(report, plans=plans, broker_alone=broker)


def run_rounds(
    stack: EmbeddedStack,
    contenders: Sequence[Contender],
    load: Load,
    *,
    rounds: int = 1,
    most_repeats: int = 0,
    watch: Watch = unwatched,
    ended: Callable[[StartResult], None] = lambda _: None,
) -> Report:
    """Starts each contender once a round, and keeps the logs when something went wrong.

    A start that fails is recorded with its reason; the next one runs all the same.

    Args:
        most_repeats: rounds that are run again at most, because a start was disturbed.
        watch: sees each start from beside.
        ended: is told of each start that has ended.
    """
    began = time.monotonic()

    def start(contender: Contender, number: int) -> StartResult:
        result = Start(stack, contender, load, number, watch).run()
        for line in describe_start(result):
            stack.say(line)
        ended(result)
        return result

    starts = run_in_rounds(start, contenders, rounds, seed=load.seed, most_repeats=most_repeats)
    report = Report(
        starts=starts,
        load=load,
        versions=dict(stack.versions) | {name: v for one in contenders for name, v in one.versions().items()},
        machine=describe_machine(),
        settings={"rounds": rounds, "sent_share_of_rate": DRIFT, **_describe(load, stack.settings)},
        took_s=time.monotonic() - began,
    )
    if not report.ok:
        stack.workspace.keep_logs()
    return report


def run_in_rounds(
    start: Callable[[_Item, int], StartResult], items: Sequence[_Item], rounds: int, *, seed: int, most_repeats: int
) -> list[StartResult]:
    """Starts each item once a round, in another random order each time; a single round keeps the given one.

    A round in which a start was disturbed is set aside and run again, all of it, since contenders are compared within
    a round; so often altogether, after which disturbed rounds count, too.

    Args:
        start: gets an item and the number of the round, from 1; each time that a round is run, the next one.
    """
    results: list[StartResult] = []
    number = aside = 0
    while number - aside < rounds:
        number += 1
        order = random.Random(f"{seed} {number}").sample(items, len(items)) if rounds > 1 else items
        ran = [start(item, number) for item in order]
        if aside < most_repeats and any(one.is_disturbed for one in ran):
            aside += 1
            ran = [replace(one, is_set_aside=True) for one in ran]
        results += ran
    return results


def _describe(load: Load, settings: Settings) -> Mapping[str, Any]:
    rates = ", ".join(f"{rate:g}" for rate in load.rates)
    knobs = {knob: getattr(settings, knob) for knob in ("spark_master", *KNOBS)}
    decides = {"query": settings.query} if settings.query else {"rules": settings.rules.name}
    files = {"schema": str(load.schema or settings.payment_schema.name), "replay": str(load.replay or "")}
    return {**asdict(load), "rates": rates, **decides, **files, **knobs}


def _warm_up_broker(stack: EmbeddedStack, load: Load) -> None:
    """A start of Kafka Streams without rates, so that the first contender does not meet a cold broker.

    With the shipped rules and schema: it has no others.
    """
    stack.say("warming up the broker")
    first = replace(CONTENDERS["streams"], label="warm-up")
    warmed = Start(stack.with_settings(shipped()), first, replace(load, rates=()), 0).run()
    if warmed.error:
        raise FraudFilterError(f"the broker could not be warmed up: {warmed.error}")
