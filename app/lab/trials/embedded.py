"""Trials on the embedded stack: filters follow each other on one checkpoint while payments keep coming."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from fraud_filter.audit.gaps import Recorded, recorded_in
from fraud_filter.audit.result import AuditResult
from fraud_filter.audit.run import audit
from fraud_filter.checkpoint.files import CheckpointFiles, open_checkpoint
from fraud_filter.config import Settings, duration_s
from fraud_filter.kafka.admin import find_input, open_admin
from fraud_filter.kafka.topics import create_topics
from fraud_filter.probe.probe import Probe
from lab.harness.drain import drain, open_input, write_input
from lab.harness.embedded_stack import Scene, embedded_stack
from lab.harness.java import Say
from lab.harness.outcome import Audited
from lab.harness.processes import Child
from lab.harness.programs import filter_program, generator_program, location
from lab.harness.waiting import let_pass, raise_if_dead, wait_until
from lab.trials.filter_run import FilterRun
from lab.trials.gap import FlaggedTail, Gap, open_tail
from lab.trials.plan import Trial
from lab.trials.result import Outcome

_PARTITIONS = 2
#: Deadlines in seconds: Spark's start takes about 10 s on 2 idle cores.
START_S = 240
_DRAIN_S = 90
#: The generator is stopped; this is its limit should nobody do so.
_LIMIT_S = 24 * 3600
_SETTLE_S = 1.0
#: A payment of no rule's kind.
_PAYMENT = {
    "amount": 20.0, "currency": "EUR", "merchant": "Corner shop", "merchant_category": "groceries", "country": "DE",
    "card_country": "DE",
}  # fmt: skip


class Relay:
    """Filters that follow each other on one checkpoint; audited from its first payment on.

    Of changed rules the audit begins before the last change but one: what came before that was committed by then.
    """

    def __init__(self, scene: Scene, trial: Trial, number: int) -> None:
        """Starts the first one, for this trial and those that fit to it; `number` is the checkpoint's."""
        self.scene = scene
        self.filters: list[FilterRun] = []
        self.changes: dict[str, Any] = {}
        self._shape = _shape(trial)
        self._mode = trial.mode
        self._name = f"{number}-{trial.disturbance}"
        self._runs = 0
        self._start = self._audit_from = self._drained = scene.topic.end_offsets()
        self._audited: AuditResult | None = None
        #: Of the checkpoint, for all audits: the Java behind it takes seconds to start.
        self._files: CheckpointFiles | None = None
        self._opened = ExitStack()
        try:
            self.add(trial, standby=trial.in_turn if trial.warm else trial.standby)
            self.await_decisions(scene.topic.end_offsets())
            if trial.cards:
                send_cards(scene.stack.settings, trial.cards)
                drain(scene.topic, scene.probe.has_passed, START_S, "the cards are not known", self.programs)
                let_pass(self.longest_batch_s, self.programs)
        except BaseException:
            self.stop()
            raise

    def fits(self, trial: Trial) -> bool:
        """Whether the trial can go on where the one before ended."""
        return (self._mode, self._shape) == (trial.mode, _shape(trial))

    def disturb(self, trial: Trial, act: Callable[[Relay, Trial, FlaggedTail], Gap]) -> Outcome:
        """One trial.

        Raises:
            FraudFilterError: no decision comes in time, a program ended, or a filter did not do its part.
        """
        if trial.standby and not trial.warm and len(self.filters) == 1:
            self.add(trial, standby=True)
        if len(self.filters) > 1:
            ready = lambda: any(run.is_waiting for run in self.filters)  # noqa: E731
            wait_until(ready, START_S, "no standby is ready", self.programs)
            self.filters.sort(key=lambda run: run.is_waiting)  # which is active: after a hang, say, the other one
        in_turn = trial.warm and len(self.filters) > 1
        let_pass(self.scene.seconds, self.programs)
        with open_tail(self.scene.stack.settings) as tail:
            gap = act(self, trial, tail)
        self._mode = trial.to
        counts = self._audit(trial)
        return Outcome(
            replace(trial, in_turn=in_turn), gap.seconds, gap.recovery_s, counts, seen_as=self.filters[0].how,
            details=gap.details,
        )  # fmt: skip

    def _audit(self, trial: Trial) -> Audited:
        scene = self.scene
        end = drain(scene.topic, scene.probe.has_passed, _DRAIN_S, "not all was decided", self.programs)
        settings = scene.stack.settings
        recorded = self._read_recorded() if trial.warm else None
        found = audit(settings, start=self._audit_from, end=end, settle_s=_SETTLE_S, recorded=recorded)
        before, self._audited = self._audited, found
        if trial.disturbance == "rules":
            self._audit_from, self._drained = self._drained, end
            self._audited = audit(settings, start=self._audit_from, end=end, settle_s=0, recorded=recorded)
        return Audited.of(found, before)

    def _read_recorded(self) -> Recorded | None:
        settings = self.scene.stack.settings
        if self._files is None:
            at = location(settings, self.scene.stack.workspace, self._name)
            self._files = self._opened.enter_context(open_checkpoint(at, settings))
        return recorded_in(self._files, settings, find_input(open_admin(settings), settings).id)

    def add(self, trial: Trial, *, standby: bool = False, handover: bool = False) -> FilterRun:
        """Starts a filter: in the trial's first mode the first one and standbys, others in the mode after it."""
        mode = trial.mode if standby or not self._runs else trial.to
        self._runs += 1
        stack = self.scene.stack
        child = filter_program(
            stack, mode, self._start, checkpoint=self._name, standby=standby, handover=handover,
            log=f"{self._name}-{self._runs:02}-{mode}.log", changes=self.changes,
        )  # fmt: skip
        run = FilterRun(child, stack.settings.stop_timeout_s)
        self.filters.append(run)
        run.child.start()
        return run

    def go_on(self, trial: Trial) -> None:
        """The active filter is gone: without a standby another one is started."""
        self.filters.pop(0)
        if not trial.standby:
            self.add(trial)

    def stop(self) -> None:
        """Ends what runs, standbys first."""
        self._opened.close()
        for run in reversed(self.filters):
            run.stop()

    def await_decisions(self, offsets: dict[int, int], timeout_s: float = START_S) -> None:
        """Waits until a decision about a payment at or after `offsets` has come out of each partition."""
        wait_until(lambda: self.scene.probe.has_passed(offsets), timeout_s, "not all was decided", self.programs)

    def await_fresh(self, tail: FlaggedTail, at: float) -> Gap:
        """See `FlaggedTail.await_fresh`; all programs run meanwhile."""
        return tail.await_fresh(at, START_S, lambda: raise_if_dead(self.programs))

    @property
    def longest_batch_s(self) -> float:
        """How long a batch of real-time mode lasts, in seconds."""
        return duration_s(self.scene.stack.settings.real_time_duration)

    @property
    def programs(self) -> tuple[Child, ...]:
        """All that has to run."""
        brokers = [broker.child for broker in self.scene.stack.brokers if broker.is_wanted]
        return (*brokers, self.scene.generator, *(run.child for run in self.filters))


def _shape(trial: Trial) -> tuple[Any, ...]:
    """Trials of one shape can follow each other on one checkpoint."""
    return trial.standby, trial.warm, trial.cards, trial.in_turn, trial.disturbance if trial.in_turn else ""


@contextmanager
def open_scene(
    settings: Settings, *, rate: float, seconds: float, below: str, say: Say, brokers: int = 1
) -> Iterator[Scene]:
    """Starts Kafka and a generator, and stops everything at the end.

    Args:
        rate: payments per second, all the time.
        seconds: under load before each disturbance.
        below: where the checkpoints go, on any Hadoop file system; on this machine's disk when it is empty.
        brokers: of the Kafka cluster.
    """
    with embedded_stack("trial", settings, say, partitions=_PARTITIONS, brokers=brokers) as stack:
        create_topics(stack.settings, partitions=_PARTITIONS)
        own = stack.with_settings({"checkpoint": below} if below else {})
        generator = generator_program(
            own, rate=rate, seconds=_LIMIT_S, flagged_share=0.5, malformed_share=0.01, log="generator.log"
        )
        with generator, Probe(own.settings) as probe, open_input(own.settings) as topic:
            yield Scene(own, probe, topic, generator, seconds)


def send_cards(settings: Settings, cards: int) -> None:
    """Sends a payment of each card, by the generator's names: its own payments are of some of them."""
    now = datetime.now(UTC).isoformat()

    def record(card: str) -> dict[str, bytes]:
        value = {**_PAYMENT, "payment_id": f"first-of-{card}", "card_id": card, "created_at": now}
        return {"key": card.encode(), "value": json.dumps(value).encode()}

    write_input(settings, (record(f"card-{number:06}") for number in range(1, cards + 1)))
