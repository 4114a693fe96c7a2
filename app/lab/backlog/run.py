"""Writes the backlog, and has each mode work it off from an empty checkpoint while more payments come in."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from fraud_filter.audit.run import audit
from fraud_filter.config import ModeName, Settings
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.consumer import InputTopic, open_input, records_between
from fraud_filter.kafka.topics import create_topics
from fraud_filter.probe.probe import Probe
from lab.backlog.result import CatchUp
from lab.harness.drain import drain
from lab.harness.embedded_stack import EmbeddedStack, Say, embedded_stack
from lab.harness.outcome import Audited
from lab.harness.processes import Child, stop_signals
from lab.harness.programs import generator_program
from lab.harness.sampler import Sampler
from lab.harness.waiting import wait_until
from lab.transitions.filter_run import FilterRun

_PARTITIONS = 2
#: One task slot a partition permanently, and some for the micro-batch modes.
_SLOTS = 4
#: Deadlines in seconds: Spark's start takes about 10 s on 2 idle cores. The others are for each 1,000 records.
_START_S = 240
_WRITE_S_PER_1000 = 2.0
_CATCH_UP_S_PER_1000 = 2.0
#: How long decisions may be under way when the audit looks.
_SETTLE_S = 3.0
#: The generator of the live load is stopped; this is its limit should nobody do so.
_LIMIT_S = 24 * 3600
#: More than any machine sends: the backlog is written as fast as can be.
_FULL_SPEED = 1e6


def run_backlog(settings: Settings, modes: Sequence[ModeName], *, records: int, rate: float, say: Say) -> list[CatchUp]:
    """Starts Kafka, writes `records` payments, runs the modes one after the other, and stops everything.

    Args:
        rate: payments per second that come in while a mode works.

    Raises:
        FraudFilterError: the stack could not be started, or the backlog not be written.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP.
    """
    with stop_signals(), embedded_stack("backlog", settings, say, slots=_SLOTS, partitions=_PARTITIONS) as stack:
        began = time.monotonic()
        _write(stack, records)
        say(f"{records:,} payments written in {time.monotonic() - began:.0f} s")
        with open_input(stack.settings) as topic:
            results = [_run(stack, topic, mode, rate) for mode in modes]
        if not all(result.ok for result in results):
            stack.workspace.keep_logs()
    return results


def _write(stack: EmbeddedStack, records: int) -> None:
    with generator_program(stack, rate=_FULL_SPEED, count=records, log="backlog.log") as generator:
        timeout_s = 60 + records / 1000 * _WRITE_S_PER_1000
        if generator.wait(timeout_s) != 0:
            lines = "\n".join(generator.tail(5))
            raise FraudFilterError(f"the backlog was not written within {timeout_s:.0f} s; the generator says\n{lines}")


def _run(stack: EmbeddedStack, topic: InputTopic, mode: ModeName, rate: float) -> CatchUp:
    """A mode that fails is part of the result, so that the others run all the same."""
    stack = stack.with_settings(
        {"flagged_topic": f"flagged.{mode}", "rejected_topic": f"rejected.{mode}", "mode": mode}
    )
    create_topics(stack.settings, partitions=_PARTITIONS)
    start = dict.fromkeys(topic.end_offsets(), 0)
    waiting = topic.end_offsets()
    run = FilterRun(stack, mode, start, checkpoint=f"checkpoint-{mode}", log=f"{mode}.log")
    result, sampler = CatchUp(mode, records_between(start, waiting)), Sampler({mode: run.child})
    stack.say(f"{mode}: starting with {result.records:,} payments to work off")
    try:
        generator = generator_program(stack, rate=rate, seconds=_LIMIT_S, log=f"live-{mode}.log")
        with Probe(stack.settings) as probe, generator, run.child, sampler:
            result = _catch_up(result, run.child, probe, waiting, (stack.broker, generator))
            generator.stop()
            end = drain(topic, probe.has_passed, _START_S, _late(run.child), (stack.broker, run.child))
            if run.stop("clean") != 0:
                raise FraudFilterError(f"{run.child.name} did not stop cleanly: exit code {run.child.returncode}")
        found = audit(stack.settings, start=start, end=end, settle_s=_SETTLE_S)
        result = replace(result, audit=Audited.of(found))
    except FraudFilterError as error:
        result = replace(result, error=str(error))
    result = replace(result, peak_bytes=round((sampler.peak_rss_mib(mode) or 0) * 2**20))
    stack.say(f"{mode}: {result.error or f'caught up in {result.seconds:g} s, {result.audit.lost} lost'}")
    return result


def _catch_up(result: CatchUp, child: Child, probe: Probe, waiting: dict[int, int], others: Sequence[Child]) -> CatchUp:
    """Waits for the first decision, then until the payments before the offsets `waiting` are decided."""
    programs, began = (*others, child), time.monotonic()
    wait_until(lambda: bool(probe.snapshot().source_offsets), _START_S, f"{child.name} decided nothing", programs)
    first = time.monotonic()
    timeout_s = 60 + result.records / 1000 * _CATCH_UP_S_PER_1000
    wait_until(lambda: probe.has_passed(waiting), timeout_s, _late(child), programs)
    return replace(result, start_s=round(first - began, 1), seconds=round(time.monotonic() - first, 1))


def _late(child: Child) -> str:
    return f"{child.name} did not decide all payments"
