"""One mode of the demo, from the start of its filter to its audit."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from fraud_filter.audit.run import audit
from fraud_filter.config import ModeName
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.input_topic import InputTopic, records_between
from fraud_filter.metrics.latency import Second
from fraud_filter.modes import MODES
from fraud_filter.pages.numbers import format_number
from fraud_filter.probe.probe import Probe
from lab.demo.live import ModeStatus, State, View
from lab.demo.observer import Observer
from lab.demo.plan import DemoPlan
from lab.demo.result import ModeResult, second_between
from lab.demo.wording import describe_problem
from lab.harness.drain import drain
from lab.harness.embedded_stack import EmbeddedStack
from lab.harness.outcome import Audited
from lab.harness.processes import Child
from lab.harness.programs import filter_program, generator_program
from lab.harness.waiting import TooLateError, let_pass, wait_until

#: Deadlines in seconds. Spark's start takes about 10 s on 2 cores; a slow or busy machine gets more.
_FIRST_OUTPUT_S = 120
_DRAIN_S = 20
_GENERATOR_STOP_S = 10
_CATCH_UP_S = 30
#: The generator is told to stop; this is its limit should nobody do so, in seconds beyond the planned ones.
_SPARE_S = 300
#: With more than this many seconds' worth of payments behind, what came in during the start is still being worked
#: off. Micro-batches are up to one second behind when all is well.
_BACKLOG_S = 2
#: The same when the demo is interrupted. Spark is killed when it can't make it, as while it is still starting.
_HURRY_S = 4
#: What a program gets beyond its own deadline for stopping, before it is killed.
_MARGIN_S = 5
#: How often the elapsed time is shown, in seconds; the measured seconds end on the second anyway.
_TICK_S = 0.2


class ModeRun:
    """The run of one mode, step by step; its status shows where it is."""

    def __init__(
        self, stack: EmbeddedStack, plan: DemoPlan, probe: Probe, topic: InputTopic, view: View, status: ModeStatus
    ) -> None:
        self._stack = stack
        self._plan = plan
        self._probe = probe
        self._topic = topic
        self._view = view
        self._status = status
        self._mode = status.mode
        self._children: list[Child] = [stack.broker]

    def run(self) -> ModeResult:
        """Runs, measures and audits the mode; a failure is part of the result, so that the demo goes on."""
        try:
            result = self._run()
        except FraudFilterError as error:
            result = replace(_blank(self._mode), error=str(error))
        problem = describe_problem(result)
        self._enter("failed" if problem else "done", detail=problem or _summary(result))
        return result

    def _run(self) -> ModeResult:
        """All steps. Whatever happens, filter and generator are stopped afterwards.

        Raises:
            FraudFilterError: a program ended, nothing came out in time, or the broker went away.
        """
        began = time.monotonic()
        self._enter("starting")
        seen = Observer(self._probe, self._topic, self._status)
        names = {"checkpoint": f"checkpoint-{self._mode}", "log": f"filter-{self._mode}.log"}
        query, generator = filter_program(self._stack, self._mode, seen.start, **names), self._generator()
        with query, generator, _hurried_by_interruption(query, generator):
            self._children += [query, generator]
            wait_until(lambda: seen.has_output, _FIRST_OUTPUT_S, "nothing was flagged", self._children)
            first_output_s = time.monotonic() - began
            self._warm_up(seen)
            measured = self._measure(seen)
            self._enter("draining")
            self._children.remove(generator)
            generator.stop(_GENERATOR_STOP_S)
            end = self._drain(seen)
            self._children.remove(query)
            code = query.stop(self._stack.settings.stop_timeout_s + _MARGIN_S)
        if code != 0:
            raise FraudFilterError(f"{query.name} did not stop cleanly: exit code {code}")
        self._enter("auditing")
        found = audit(self._stack.settings, start=seen.start, end=end)
        return replace(
            measured,
            first_output_s=round(first_output_s, 1),
            flagged=found.written,
            audit=Audited.of(found),
            rejected=found.rejected,
        )

    def _generator(self) -> Child:
        """At the planned rate, for longer than the mode will take."""
        plan = self._plan
        return generator_program(
            self._stack,
            rate=plan.rate,
            seconds=plan.warmup_s + plan.seconds + _SPARE_S,
            flagged_share=plan.flagged_share,
            malformed_share=plan.malformed_share,
            seed=plan.seed,
            log=f"generator-{self._mode}.log",
        )

    def _enter(self, state: State, *, total_s: float | None = None, detail: str = "") -> None:
        """Shows a new state, which takes `total_s` seconds if that is known."""
        status = self._status
        status.state, status.detail, status.elapsed_s, status.total_s = state, detail, 0, total_s
        self._view.announce(status)

    def _warm_up(self, seen: Observer) -> None:
        """The planned seconds, and as many more as it takes to work off what came in during the start."""
        seconds = self._plan.warmup_s
        self._enter("warming up", total_s=seconds)
        for _ in self._seconds(seconds):
            seen.refresh()
        most = self._plan.rate * _BACKLOG_S
        if seen.refresh() > most:
            self._enter("catching up")
            with suppress(TooLateError):  # it can't keep up: the report tells the backlog, and the latency shows it
                wait_until(lambda: seen.refresh() <= most, _CATCH_UP_S, "still behind", self._children)

    def _seconds(self, seconds: float) -> Iterator[int]:
        """Lets `seconds` pass and yields the number of each second, counted from 1, when it is over."""
        began = time.monotonic()
        for second in range(1, math.ceil(seconds) + 1):
            until = began + min(second, seconds)
            while (left := until - time.monotonic()) > 0:
                let_pass(min(left, _TICK_S), self._children)
                self._status.elapsed_s = time.monotonic() - began
            yield second

    def _measure(self, seen: Observer) -> ModeResult:
        """The measurement: everything that comes out from its first to its last second."""
        seconds = self._plan.seconds
        self._enter("measuring", total_s=seconds)
        backlog = seen.refresh()
        at_start, began = self._topic.end_offsets(), time.monotonic()
        seen.reset()
        timeline: list[Second] = []
        before: dict[int, int] = {}
        for second in self._seconds(seconds):
            now = self._probe.distribution()
            timeline.append(second_between(second, before, now))
            before = now
            seen.refresh()
        snapshot, distribution = self._probe.snapshot(), self._probe.distribution()
        arrived = records_between(at_start, self._topic.end_offsets())
        rate = arrived / (time.monotonic() - began)
        self._status.rate = rate
        return replace(
            _blank(self._mode),
            measured=sum(distribution.values()),
            p50_ms=snapshot.p50_ms,
            p90_ms=snapshot.p90_ms,
            p99_ms=snapshot.p99_ms,
            p999_ms=snapshot.p999_ms,
            max_ms=snapshot.max_ms,
            rate_kept=round(rate, 1),
            backlog=backlog,
            distribution=distribution,
            timeline=tuple(timeline),
        )

    def _drain(self, seen: Observer) -> dict[int, int]:
        """Waits until the filter has read all that the generator wrote; returns the offsets after it.

        A filter that does not get there in time is left to the audit.
        """
        end = self._topic.end_offsets()
        with suppress(TooLateError):
            drain(self._topic, self._probe.has_passed, _DRAIN_S, "not all payments were read", self._children)
        self._status.lag = seen.output_lag(end)
        return end


@contextmanager
def _hurried_by_interruption(*children: Child) -> Iterator[None]:
    """On Ctrl-C or SIGTERM, stops the children in a hurry: what they have at stake is thrown away anyway."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        for child in children:
            child.stop(_HURRY_S)
        raise


def _blank(mode: ModeName) -> ModeResult:
    return ModeResult(
        mode=mode,
        engine_guarantee=MODES[mode].engine_guarantee,
        delivery_guarantee=MODES[mode].delivery_guarantee,
    )


def _summary(result: ModeResult) -> str:
    return (
        f"p50 {format_number(result.p50_ms)} ms, p99 {format_number(result.p99_ms)} ms, "
        f"{format_number(result.flagged)} flagged, {result.audit}"
    )
