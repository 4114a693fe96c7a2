"""One start of a contender: warmed up, loaded at each rate in ascending order, read back and audited."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from fraud_filter.audit.run import audit
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.topics import create_topics
from lab.bench.contenders import AT_LEAST_ONCE, TRANSACTIONS, Contender
from lab.bench.evaluate import evaluate
from lab.bench.launch import Enter, Launch, Phase, Watch, unwatched
from lab.bench.plan import DRIFT, Load
from lab.bench.readback import QuietTail, Readback, Tail, follow, is_all_committed, note_committed
from lab.bench.result import RateResult, StartResult
from lab.harness.drain import END_MARK, InputTopic, drain, open_input
from lab.harness.embedded_stack import EmbeddedStack
from lab.harness.outcome import Audited
from lab.harness.processes import Child, kill_family
from lab.harness.programs import generator_program
from lab.harness.sampler import Sampler
from lab.harness.waiting import let_pass, wait_until

#: Payments per second until the contender has decided about one, so that nothing piles up while it starts.
_FIRST_RATE = 20.0
#: At the lowest rate after the warm-up, not measured: a JVM is still compiling what the warm-up left in its queue.
_CALM_S = 12.0
#: Deadlines in seconds: Spark's start takes about 10 s on 2 idle cores.
_FIRST_OUTPUT_S = 240
_DRAIN_S = 120
#: What a contender gets beyond its own deadline for stopping, before it is killed.
_STOP_MARGIN_S = 15
#: The deadline for stopping when the run is interrupted: what the contender has at stake is thrown away anyway.
_HURRY_S = 4
#: The generator itself takes a second or two to start, and to see its last payment confirmed.
_GENERATOR_S = 60
#: Decisions and the mark after them are written to several topics, side by side.
_AFTER_MARK_S = 0.5


@dataclass(frozen=True)
class _Segment:
    """The payments of one rate: offsets of the input topic, and who watched the programs."""

    rate: float
    start: dict[int, int]
    end: dict[int, int]
    sampler: Sampler


class Start:
    """A start of the contender in round `number`, under the `load`. `watch` sees it from beside."""

    def __init__(
        self, stack: EmbeddedStack, contender: Contender, load: Load, number: int, watch: Watch = unwatched
    ) -> None:
        self._contender = contender
        self._partitions = contender.partitions or load.partitions
        self._payments = load
        self._round = number
        self._label = f"{contender.label}-{number}"
        # Topics of its own: the audit and the read-back then read nothing of the others.
        own = stack.with_settings(contender.shared)
        written = [] if own.settings.query else ["approved_topic", "rejected_topic"]
        names = ("input_topic", "flagged_topic", *written)
        self._stack = own.with_settings({name: f"{self._label}.{name.removesuffix('_topic')}" for name in names})
        #: With the names of its topics, and what differs for the contender.
        self._settings = self._stack.settings
        #: No query of the user's is known to write anything about it.
        self._mark = None if self._settings.query else contender.mark
        self._watch = watch
        self._segments: list[_Segment] = []
        self._generators = 0
        #: When Spark committed batches, as the checkpoint's files tell.
        self._ends_s: list[float] = []
        self._enter: Enter
        #: What a consumer has noted; None where the stamps of the topics tell.
        self._seen: Sequence[tuple[int, int]] | None = None

    def run(self) -> StartResult:
        """Runs, measures and audits; a failure is part of the result, so that the bench goes on."""
        may_repeat = self._payments.kill and self._contender.delivery == AT_LEAST_ONCE
        blank = StartResult(self._contender.name, self._round, may_repeat=may_repeat)
        place = self._contender.checkpoints or self._stack.workspace.path
        try:
            create_topics(self._settings, partitions=self._partitions)
            transactions = self._contender.delivery == TRANSACTIONS
            with (
                TemporaryDirectory(prefix="fraud-filter-", dir=place, ignore_cleanup_errors=True) as folder,
                open_input(self._settings) as topic,
                follow(self._settings) as tail,
                note_committed(self._settings) if transactions else nullcontext() as self._seen,
                self._watch(self._contender.name, self._settings) as enter,
            ):
                self._enter = enter
                return self._run(blank, topic, tail, Path(folder))
        except FraudFilterError as error:
            return replace(blank, error=str(error))

    def _run(self, blank: StartResult, topic: InputTopic, tail: Tail, folder: Path) -> StartResult:
        self._enter("starting", 0)
        launch = Launch(self._stack, topic.end_offsets(), self._label, folder, self._contender.own)
        contender = self._contender.program(launch)
        began_s = time.time()
        error: str | None = None
        rate: float | None = None
        failed_at: float | None = None
        with contender:
            try:
                self._start(contender, topic, tail)
                for rate in self._payments.rates:
                    self._segments.append(self._load(contender, rate, topic, tail))
            except FraudFilterError as failure:
                error, failed_at = str(failure), rate
            except (KeyboardInterrupt, SystemExit):
                contender.stop(_HURRY_S)
                raise
            code = contender.stop(self._settings.stop_timeout_s + _STOP_MARGIN_S)
        self._ends_s = [file.stat().st_mtime for file in folder.glob("commits/[0-9]*")]
        if code != 0 and error is None:
            error = f"{contender.name} did not stop cleanly: exit code {code}"
        self._enter("auditing", 0)
        read = Readback(self._settings, self._seen)
        rates = tuple(self._figures(segment, read) for segment in self._segments)
        first_s = None if read.first_decision_s is None else round(read.first_decision_s - began_s, 2)
        return replace(blank, rates=rates, first_decision_s=first_s, error=error, failed_at=failed_at)

    def _figures(self, segment: _Segment, read: Readback) -> RateResult:
        load = self._payments
        figures = evaluate(
            segment.rate,
            read.between(segment.start, segment.end),
            segment.sampler,
            settle_s=load.settle_s,
            seconds=load.seconds_at(segment.rate),
            ends_s=self._ends_s,
        )
        if not self._contender.has_places:
            return figures
        found = audit(self._settings, start=segment.start, end=segment.end, labels=load.fraud_share > 0)
        compared = found.features
        return replace(
            figures,
            audit=Audited.of(found),
            flagged=found.written,
            rejected=found.rejected,
            features={"decisions": compared.decisions, "differing": compared.differing} if compared else None,
            detection=found.detection.families if found.detection else None,
        )

    def _start(self, contender: Child, topic: InputTopic, tail: Tail) -> None:
        """Until the first decision about a record of each partition, or the first row, then the warm-up."""
        with self._generator(_FIRST_RATE, _FIRST_OUTPUT_S) as slow:
            decides = "it decided nothing", (contender, slow)
            if isinstance(tail, QuietTail):
                wait_until(tail.has_begun, _FIRST_OUTPUT_S, *decides)
            else:
                drain(topic, tail.has_passed, _FIRST_OUTPUT_S, *decides, self._mark)
        if self._payments.warmup_s:
            self._send(contender, self._payments.warmup_rate, {"warming up": self._payments.warmup_s}, topic, tail)
            for rate in self._payments.rates[:1]:
                self._send(contender, rate, {"warming up": min(_CALM_S, self._payments.warmup_s)}, topic, tail)

    def _load(self, contender: Child, rate: float, topic: InputTopic, tail: Tail) -> _Segment:
        """One rate: the settling and the measured seconds, until all of it is decided."""
        self._stack.say(f"round {self._round}, {self._contender.name}: {rate:g} payments/s")
        start = topic.end_offsets()
        phases: dict[Phase, float] = {
            "warming up": self._payments.settle_s,
            "measuring": self._payments.seconds_at(rate),
        }
        sampler, end = self._send(contender, rate, phases, topic, tail)
        return _Segment(rate, start, end, sampler)

    def _send(
        self, contender: Child, rate: float, phases: Mapping[Phase, float], topic: InputTopic, tail: Tail
    ) -> tuple[Sampler, dict[int, int]]:
        """Sends payments for the seconds of the phases and waits until they are decided.

        Returns:
            who watched the programs meanwhile, and the offsets after the last payment.

        Raises:
            FraudFilterError: a program ended, or the contender did not get to the end in time.
        """
        before = topic.end_offsets()
        generator = self._generator(rate * DRIFT, sum(phases.values()) + 0.5)  # a little more than what is measured
        watched = {"contender": contender, "broker": self._stack.brokers[0].child, "generator": generator}
        with generator, Sampler(watched) as sampler:
            programs = (contender, watched["broker"])
            sending = (*programs, generator)
            wait_until(lambda: topic.end_offsets() != before, _GENERATOR_S, "the generator sent nothing", sending)
            for phase, seconds in phases.items():
                self._enter(phase, seconds)
                if phase == "measuring" and self._payments.kill:
                    let_pass(seconds / 2, programs)
                    kill_family(contender)
                    contender.stop()
                    contender.start()
                    seconds /= 2
                let_pass(seconds, programs)
            wait_until(lambda: not generator.is_alive, _GENERATOR_S, "the generator went on", programs)
            if generator.returncode != 0:
                generator.raise_if_dead()
        self._enter("draining", 0)
        late = f"at {rate:g} payments/s it fell behind: not all payments were decided"
        end = drain(topic, tail.has_passed, _DRAIN_S, late, programs, self._mark)
        if self._seen is not None:
            wait_until(lambda: is_all_committed(self._settings), _DRAIN_S, "a transaction stays open", programs)
        time.sleep(_AFTER_MARK_S)
        return sampler, end

    def _generator(self, rate: float, seconds: float) -> Child:
        self._generators += 1
        load, query = self._payments, self._settings.query
        made = {"query": "", **({"payment_schema": load.schema} if load.schema else {})} if query else {}
        drawn = {
            "flagged_share": None if load.schema else load.flagged_share,
            "malformed_share": load.malformed_share if self._mark == END_MARK else 0,
            "fraud_share": load.fraud_share or None,
            "seed": load.seed + self._generators,  # the same payments for every contender in every round
        }
        return generator_program(
            self._stack.with_settings(made),
            rate=rate,
            seconds=seconds,
            **({} if load.replay else drawn),
            replay=load.replay,
            at_random=load.at_random,
            log=f"{self._label}-generator-{self._generators}.log",
        )
