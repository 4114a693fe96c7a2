"""Compares what was written with what should have been, payment by payment, from the topics alone.

What should have been is decided by `oracle`, not by the query. Delivery is at-least-once in every mode: duplicates are
counted, and are no fault; lost and unexpected ones are.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from fraud_filter.audit.detection import Detection
from fraud_filter.audit.gaps import Recorded, find_gaps, find_missing
from fraud_filter.audit.history import History, find_history
from fraud_filter.audit.ledger import FLAGGED, REJECTED, Ledger
from fraud_filter.audit.result import AuditResult, FeatureCounts
from fraud_filter.audit.rulings import Rulings
from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from fraud_filter.kafka.offsets import find_bounds, find_partitions, open_consumer, read_records
from fraud_filter.kafka.topic_id import find_input, open_admin
from fraud_filter.model.read import read_model, reread_model
from fraud_filter.oracle import Decision, Oracle, Place
from fraud_filter.query.record_size import why_unread
from fraud_filter.query.source_headers import read_source
from fraud_filter.rules.ruleset import load_rules
from fraud_filter.rules.version import ruling_of
from fraud_filter.schema import REASON_RECORD_TIME, REASON_TOO_LARGE, input_schema

_UNREAD = {reason: Decision(reason, (), ()) for reason in (REASON_TOO_LARGE, REASON_RECORD_TIME)}

#: Partitions that are read at a time: each holds memory while it is.
_AT_A_TIME = 8


def audit(
    settings: Settings,
    *,
    start: Mapping[int, int] | None = None,
    end: Mapping[int, int] | None = None,
    settle_s: float = 0.0,
    examples: int = 10,
    recorded: Recorded | None = None,
    labels: bool = False,
) -> AuditResult:
    """Audits the payments from offset `start` to before `end` of each partition of the input topic.

    Partitions that `start` or `end` does not name are taken from their first retained record, or to their current
    end. Whole output topics are read; records of payments outside the range, or of another topic, are left out. Memory
    does not grow with their number: what is to be compared waits on disk, some 65 bytes a written record.

    Args:
        settings: brokers, topics; payment schema and rules for what was decided by none that the checkpoint keeps.
        start: first offset by partition. Records that are no longer retained are `missing`.
        end: offset after the last one, by partition.
        settle_s: seconds between finding the end of the input and that of the outputs, for a query that is running.
        examples: how many findings of each kind to keep.
        recorded: what the filter's checkpoint tells of payments that are gone, and of the rules that decided.
        labels: whether to tell what the rules find of labelled fraud.

    Raises:
        UsageError: no broker, a missing topic, offsets outside the topic, a schema or rules that can't be audited.
        FraudFilterError: the broker stopped answering, the disk is full, or a rule can't be evaluated.
    """
    began = time.monotonic()
    schema = input_schema(settings)
    rules, _ = read_model(load_rules(settings.rules, schema), schema, settings)
    rulings = Rulings(ruling_of(rules, schema, settings), recorded, partial(reread_model, settings=settings))
    outputs = (settings.flagged_topic, settings.rejected_topic)
    topic_id = find_input(open_admin(settings), settings).id
    with open_consumer(settings) as consumer:
        topics = find_partitions(consumer, settings, ("input_topic", "flagged_topic", "rejected_topic"))
        bounds = find_bounds(consumer, settings, settings.input_topic, topics[settings.input_topic])
        first, last = _range(settings, bounds, start or {}, end or {})
        time.sleep(settle_s)
        written = {topic: find_bounds(consumer, settings, topic, topics[topic]) for topic in outputs}
    own, *more = rulings.columns
    features = rulings.features
    ledger = Ledger(own, first, last, examples, features=rulings.results, more=more)
    for topic, limits in written.items():
        _read_output(settings, rulings, ledger, topic, topic_id, limits)
    history = History(first)
    if remembering := rulings.remembering:
        begin = recorded.begin if recorded else {}
        history = find_history(settings, remembering, features, bounds, first, last, begin)
    detection = Detection(rules) if labels else None
    reader = _PaymentReader(settings, rulings, ledger, history, detection)
    payments = reader.read(first, last)
    return AuditResult(
        start=first,
        end=last,
        payments=payments,
        expected=ledger.expected[FLAGGED],
        written=ledger.written,
        lost=ledger.close(),
        undecided=ledger.undecided,
        duplicated=ledger.duplicated,
        unexpected=ledger.unexpected,
        rejected=ledger.rejected,
        rejected_expected=ledger.expected[REJECTED],
        reject_reasons=dict(sorted(ledger.reject_reasons.items())),
        examples={kind: tuple(found) for kind, found in ledger.examples.items()},
        took_s=round(time.monotonic() - began, 3),
        gaps=find_gaps(recorded, {number: low for number, (low, _) in bounds.items()}, first, last) if recorded else (),
        former=ledger.former,
        missing=find_missing(start or {}, end or {}, first),
        features=FeatureCounts(ledger.compared, ledger.differing, ledger.untold, reader.truncated)
        if rulings.results
        else None,
        detection=detection.result() if detection else None,
        versions=dict(sorted(rulings.counted.items())),
        unknown=rulings.unknown,
    )


def _range(
    settings: Settings, bounds: Mapping[int, tuple[int, int]], start: Mapping[int, int], end: Mapping[int, int]
) -> tuple[dict[int, int], dict[int, int]]:
    """The offsets to audit, by partition, within what is retained."""
    topic, named = settings.input_topic, {*start, *end}
    if named - set(bounds):
        raise UsageError(
            f"the topic {topic!r} has no partition {min(named - set(bounds))}; it has {', '.join(map(str, bounds))}"
        )
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for partition, (low, high) in bounds.items():
        last[partition] = end.get(partition, high)
        wanted = start.get(partition, min(low, last[partition]))
        if not 0 <= wanted <= last[partition] <= high:
            raise UsageError(
                f"the topic {topic!r}, partition {partition}: offsets {wanted} to {last[partition]} can't be audited; "
                f"give a start not after the end, and an end not after {high}, where the topic ends"
            )
        first[partition] = min(max(wanted, low), last[partition])
    return first, last


class _PaymentReader:
    """Reads payments, and notes in the ledger what should become of them."""

    def __init__(
        self, settings: Settings, rulings: Rulings, ledger: Ledger, history: History, detection: Detection | None
    ) -> None:
        self._settings, self._rulings, self._ledger, self._history = settings, rulings, ledger, history
        self._detection = detection
        self.truncated = 0

    def read(self, first: dict[int, int], end: Mapping[int, int]) -> int:
        """Reads them in the order of their partitions; `first` moves on where records were removed by now."""
        payments, topic = 0, self._settings.input_topic
        for group in _groups(end):
            first |= (retained := _retained(self._settings, topic, first, group))
            self._ledger.begin_at(retained)
            start = {number: min(self._history.start[number], at) for number, at in retained.items()}
            for batch in read_records(self._settings, topic, start, group):
                payments += self._expect(batch, retained)
            self._ledger.settle()
            self._rulings.forget(group)
        return payments

    def _expect(self, batch: list[Any], first: Mapping[int, int]) -> int:
        """Returns how many of the records are audited: the others come before `first`, for their keys alone."""
        places = [Place(message.partition(), message.offset(), message.timestamp()[1]) for message in batch]
        judged_by = self._rulings.of(places)
        decisions = self._decide(batch, places, judged_by)
        audited = 0
        for at, (place, message, (due, *others)) in enumerate(zip(places, batch, judged_by, strict=True)):
            if place.offset < first[place.partition]:
                continue
            audited += 1
            decision = decisions[due][at]
            self.truncated += bool(decision.truncated)
            if decision.reason is None and not self._history.can_tell(place.partition, place.timestamp_ms, decision):
                self._ledger.pass_over(place.partition, place.offset)
                continue
            self._ledger.expect(*place, *_shown(message, decision), decision, due)
            if self._detection and decision.reason is None:
                self._detection.see(message.headers(), decision.rules)
            for other in others:
                decision = decisions[other][at]
                self._ledger.allow(*place, *_shown(message, decision), decision, other)
        return audited

    def _decide(
        self, batch: list[Any], places: list[Place], judged_by: list[tuple[int, ...]]
    ) -> dict[int, dict[int, Decision]]:
        """By the number of the rules the decisions on those records of the batch that they judge, by their place."""
        of: dict[int, list[int]] = {}
        for at, numbers in enumerate(judged_by):
            for number in numbers:
                of.setdefault(number, []).append(at)
        limits = [max(self._rulings.all[number].max_record_bytes for number in numbers) for numbers in judged_by]
        values = [
            None if _unread(message, limit) else message.value() for message, limit in zip(batch, limits, strict=True)
        ]
        reads = {id(oracle): oracle.read(values, places) for oracle in self._rulings.readers(of)}
        decisions: dict[int, dict[int, Decision]] = {}
        for number, own in of.items():
            limit = self._rulings.all[number].max_record_bytes
            read = reads[id(self._rulings.oracle(number))]
            found = zip(own, self._rulings.judge(number).judge([read[at] for at in own]), strict=True)
            decisions[number] = {at: _unread(batch[at], limit) or decision for at, decision in found}
        return decisions


def _unread(message: Any, limit: int) -> Decision | None:
    """The decision on a record whose key and value the filter did not read."""
    reason = why_unread(message.key(), message.value(), message.timestamp()[1], limit)
    return _UNREAD[reason] if reason else None


def _shown(message: Any, decision: Decision) -> tuple[bytes | None, bytes | None]:
    """Key and value as a decision is written with."""
    return (None, None) if decision.reason in _UNREAD else (message.key(), message.value())


def _groups(end: Mapping[int, int]) -> Iterable[dict[int, int]]:
    """The ends of a few partitions at a time."""
    numbers = sorted(end)
    for at in range(0, len(numbers), _AT_A_TIME):
        yield {number: end[number] for number in numbers[at : at + _AT_A_TIME]}


def _retained(settings: Settings, topic: str, start: Mapping[int, int], end: Mapping[int, int]) -> dict[int, int]:
    """Where to begin in each partition of `end`: records may have been removed while others were read."""
    with open_consumer(settings) as consumer:
        bounds = find_bounds(consumer, settings, topic, sorted(end))
    return {number: min(max(start[number], low), end[number]) for number, (low, _) in bounds.items()}


def _read_output(
    settings: Settings,
    rulings: Rulings,
    ledger: Ledger,
    topic: str,
    topic_id: str,
    bounds: Mapping[int, tuple[int, int]],
) -> None:
    start = {partition: low for partition, (low, _) in bounds.items()}
    for group in _groups({partition: high for partition, (_, high) in bounds.items()}):
        for batch in read_records(settings, topic, _retained(settings, topic, start, group), group):
            for message in batch:
                source = read_source(message.headers())
                if source is None:
                    ledger.see_unreadable(message.partition(), message.offset(), topic)
                elif source.topic != settings.input_topic:
                    continue
                elif topic_id and source.topic_id not in ("", topic_id):
                    ledger.see_former()
                elif not ledger.covers(source):
                    continue
                elif (number := rulings.see(source)) is None:
                    ledger.see_outdated(source, is_rejected=topic == settings.rejected_topic)
                elif topic == settings.rejected_topic:
                    ledger.see_rejected(source, message.key(), message.value(), number)
                else:
                    fields, rules = _flagged(rulings.oracle(number), message.value())
                    ledger.see_flagged(source, message.key(), fields, rules, number)


def _flagged(oracle: Oracle, value: bytes | None) -> tuple[tuple[Any, ...] | None, tuple[str, ...]]:
    """Fields and rules of a flagged record's value; None for fields that can't be read."""
    try:
        reading, rules = oracle.flagged_reader.read_flagged(value or b"")
    except (ValueError, RecursionError):
        return None, ()
    return (reading.fields if reading.reason is None else None), rules
