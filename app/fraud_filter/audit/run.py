"""Compares what was written with what should have been, payment by payment, from the topics alone.

What should have been is decided by `oracle`, not by the query; of a query of the user's by its `expect`, if it has
one. Duplicates are counted, and are no fault, as a filter that was thought dead may write some; lost and unexpected
ones are.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

from fraud_filter.audit.books import ROW, Books, bounded_database, in_groups
from fraud_filter.audit.gaps import Recorded, find_gaps, find_missing
from fraud_filter.audit.known_rules import KnownRules
from fraud_filter.audit.result import AuditResult, Detection
from fraud_filter.audit.rows import NOT_TOLD, Record, ask, comparable, read_place
from fraud_filter.config import Settings, output_topics
from fraud_filter.errors import UsageError
from fraud_filter.kafka.admin import find_input, open_admin
from fraud_filter.kafka.consumer import (
    find_bounds,
    find_input_bounds,
    find_partitions,
    first_times_ms,
    open_consumer,
    reach_back,
    read_records,
)
from fraud_filter.model.saved import read_model, reread_model
from fraud_filter.oracle import Decision, Oracle, Place
from fraud_filter.query.user_query import Expect, UserQuery, load_user_query
from fraud_filter.records import Source, read_source
from fraud_filter.rules.features import reach_ms
from fraud_filter.rules.ruleset import load_rules
from fraud_filter.rules.version import decision_rules_of
from fraud_filter.schema import APPROVE, FLAG, REASON_RECORD_TIME, REASON_TOO_LARGE, REJECT, input_schema

#: By partition.
Offsets: TypeAlias = Mapping[int, int]

#: Why the filter reads and writes neither key nor value of a record.
_UNREAD = (REASON_TOO_LARGE, REASON_RECORD_TIME)


def audit(
    settings: Settings,
    *,
    start: Offsets | None = None,
    end: Offsets | None = None,
    settle_s: float = 0.0,
    examples: int = 10,
    recorded: Recorded | None = None,
    labels: bool = False,
) -> AuditResult:
    """Audits the payments from offset `start` to before `end` of each partition of the input topic.

    Partitions that `start` or `end` does not name are taken from their first retained record, or to their current
    end. Whole output topics are read; records of payments outside the range, or of another topic, are left out. Memory
    is bounded: what is to be compared waits on disk. A payment that can't be judged is a finding.

    Args:
        settings: brokers, topics; payment schema and rules for what was decided by none that the checkpoint keeps; or
            a query of the user's, whose rows have the places of their records.
        start: first offset by partition. Records that are no longer retained are `missing`.
        end: offset after the last one, by partition.
        settle_s: seconds between finding the end of the input and that of the outputs, for a query that is running.
        examples: how many findings of each kind to keep.
        recorded: what the filter's checkpoint tells of payments that are gone, and of the rules that decided.
        labels: whether to tell what the rules find of labelled fraud.

    Raises:
        UsageError: no broker, topic or query, offsets outside the topic, a schema or rules that can't be audited.
        FraudFilterError: the broker stopped answering, or the disk is full.
    """
    began = time.monotonic()
    judge = load_user_query(settings) if settings.query else _load_known(settings, recorded)
    topic_id = find_input(open_admin(settings), settings).id
    with open_consumer(settings) as consumer:
        topics = find_partitions(consumer, settings, ("input_topic", *output_topics(settings)))
        bounds = find_bounds(consumer, settings, settings.input_topic, topics.pop(settings.input_topic))
        first, last = _range(settings, bounds, start or {}, end or {})
        low = {number: low for number, (low, _) in bounds.items()}
        time.sleep(settle_s)
        written = {topic: find_bounds(consumer, settings, topic, partitions) for topic, partitions in topics.items()}
        ends = {number: end for number, (_, end) in find_input_bounds(consumer, settings).items()}
    with bounded_database() as database:
        reader: _Reader
        if isinstance(judge, UserQuery):
            reader = _RowReader(settings, Books(database, [], first, last, examples), judge.expect, ends)
        else:
            books = Books(database, judge.columns, first, last, examples, judge.results)
            reader = _DecisionReader(settings, books, judge, recorded.begin if recorded else {}, low, labels=labels)
        former = sum(reader.read_output(topic, topic_id, limits) for topic, limits in written.items())
        payments = reader.read_payments(first, last)
        figures = reader.figures()
    return AuditResult(
        **figures,
        start=first,
        end=last,
        payments=payments,
        took_s=round(time.monotonic() - began, 3),
        gaps=find_gaps(recorded, low, first, last) if recorded else (),
        former=former,
        missing=find_missing(start or {}, end or {}, first),
    )


def _load_known(settings: Settings, recorded: Recorded | None) -> KnownRules:
    schema = input_schema(settings)
    rules, _ = read_model(load_rules(settings.rules, schema), schema, settings)
    return KnownRules(decision_rules_of(rules, schema, settings), recorded, partial(reread_model, settings=settings))


def _range(
    settings: Settings, bounds: Mapping[int, tuple[int, int]], start: Offsets, end: Offsets
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


def _scattered(settings: Settings, oracle: Oracle, start: Offsets, end: Offsets) -> frozenset[Hashable]:
    """The keys with payments on several partitions."""
    if len(end) < 2:
        return frozenset()
    home: dict[Any, int] = {}
    found: set[Hashable] = set()
    for number in sorted(end):
        read = read_records(settings, settings.input_topic, {number: start[number]}, {number: end[number]})
        for message in chain.from_iterable(read):
            key = oracle.key(message.value())
            if home.setdefault(key, number) != number:
                found.add(key)
    return frozenset(found - {None})


class _Reader(ABC):
    """Reads the topics into the books."""

    _source = staticmethod(read_source)

    def __init__(self, settings: Settings, books: Books) -> None:
        self._settings, self._books = settings, books

    @abstractmethod
    def _see(self, message: Any, source: Source) -> None:
        """Notes a record of an output."""

    @abstractmethod
    def _expect(self, place: Place, message: Any, *, is_audited: bool) -> None:
        """Notes what should become of a payment; one that comes before the audited ones is read for its key alone."""

    def figures(self) -> dict[str, Any]:
        """Those of the result that follow from what was read."""
        return self._books.compare()

    def _begin(self, first: Offsets, last: Offsets) -> Offsets:  # noqa: ARG002 - for who reads earlier payments
        return first

    def _forget(self, partitions: Offsets) -> None:  # noqa: B027 - for who remembers payments
        pass

    def read_output(self, topic: str, topic_id: str, bounds: Mapping[int, tuple[int, int]]) -> int:
        """Reads an output topic; returns how many records are about payments of a former topic of the input's name."""
        former = 0
        low, high = ({number: limits[at] for number, limits in bounds.items()} for at in (0, 1))
        for start, end in self._groups(topic, low, high):
            for message in chain.from_iterable(read_records(self._settings, topic, start, end)):
                source = self._source(message.headers())
                if source is None:
                    reason = f"record of {topic} without readable source headers"
                    self._books.find("unexpected", message.partition(), message.offset(), reason)
                    continue
                if source.topic != self._settings.input_topic:
                    continue
                if topic_id and source.topic_id not in ("", topic_id):
                    former += 1
                    continue
                self._see(message, source)
        return former

    def read_payments(self, first: dict[int, int], last: Offsets) -> int:
        """Reads the payments, returns their number; `first` moves on where records were removed by now."""
        payments, topic, begin = 0, self._settings.input_topic, self._begin(first, last)
        for start, end in self._groups(topic, first, last):
            first |= start
            self._books.begin_at(start)
            earlier = {number: min(begin[number], at) for number, at in start.items()}
            for message in chain.from_iterable(read_records(self._settings, topic, earlier, end)):
                place = Place(message.partition(), message.offset(), message.timestamp()[1])
                is_audited = place.offset >= start[place.partition]
                self._expect(place, message, is_audited=is_audited)
                payments += is_audited
            self._forget(end)
        return payments

    def _groups(self, topic: str, start: Offsets, end: Offsets) -> Iterator[tuple[dict[int, int], dict[int, int]]]:
        """A few partitions at a time: where to begin, as records may have been removed meanwhile, and where to end."""
        for group in in_groups(end):
            with open_consumer(self._settings) as consumer:
                low = {number: low for number, (low, _) in find_bounds(consumer, self._settings, topic, group).items()}
            retained = {number: min(max(start[number], low[number]), end[number]) for number in group}
            yield retained, {number: end[number] for number in group}


class _DecisionReader(_Reader):
    """Judges decisions by rules; by partition the query began at `begin`, and `low` is the first retained offset."""

    def __init__(
        self, settings: Settings, books: Books, known_rules: KnownRules, begin: Offsets, low: Offsets, *, labels: bool
    ) -> None:
        super().__init__(settings, books)
        self._known_rules, self._began, self._low = known_rules, begin, low
        self._detection = Detection(known_rules.all[0].rules) if labels else None
        #: By partition the append time in ms since 1970 up to which windows reach back to before what can be read.
        self._untold_until: dict[int, int] = {}
        #: Keys with payments on several partitions, by the key's place among a payment's fields.
        self._scattered: dict[int, frozenset[Hashable]] = {}
        self._topics = {
            APPROVE: settings.approved_topic,
            FLAG: settings.flagged_topic,
            REJECT: settings.rejected_topic,
        }

    def figures(self) -> dict[str, Any]:
        """With what rules find of labelled fraud, and which rules decided."""
        versions, unknown = dict(sorted(self._known_rules.counted.items())), self._known_rules.unknown
        return super().figures() | {"detection": self._detection, "versions": versions, "unknown": unknown}

    def _begin(self, first: Offsets, last: Offsets) -> Offsets:
        """What features need of earlier payments is read, too; the query's state has none from before it began."""
        start, settings, low = dict(first), self._settings, self._low
        keys = {oracle.key_at: oracle for oracle in self._known_rules.remembering}
        if keys:
            longest_ms = max(reach_ms(deciding.rules.features) for deciding in self._known_rules.all)
            times = first_times_ms(settings, {number: at for number, at in first.items() if at > low[number]}, last)
            for number, reaches in reach_back(settings, first, times, longest_ms).items():
                start[number] = min(max(reaches, self._began.get(number, 0), low[number]), first[number])
            cut = {number: at for number, at in start.items() if at == low[number] > self._began.get(number, 0)}
            untold = first_times_ms(settings, cut, last)
            self._untold_until = {number: oldest + longest_ms for number, oldest in untold.items()}
            self._scattered = {at: _scattered(settings, oracle, start, last) for at, oracle in keys.items()}
        return start

    def _can_tell(self, place: Place, decision: Decision, oracle: Oracle) -> bool:
        """Whether the features of a valid payment follow from what is read: not those of a window that reaches back to
        before what is retained, nor of a key on several partitions, for the order in which the query read these is not
        known.
        """
        if not oracle.remembers:
            return True
        is_scattered = decision.fields[oracle.key_at] in self._scattered[oracle.key_at]
        untold_until = self._untold_until.get(place.partition)
        return not is_scattered and (untold_until is None or place.timestamp_ms > untold_until)

    def _forget(self, partitions: Offsets) -> None:
        for oracle in self._known_rules.remembering:
            oracle.forget(partitions)

    def _see(self, message: Any, source: Source) -> None:
        if not self._books.covers(source):
            return
        topic = message.topic()
        self._books.see_writer(source, message.timestamp()[1])
        if (number := self._known_rules.see(source)) is None:
            self._books.see_outdated(source)
        elif self._topics[source.decision] != topic:
            reason = f"a decision to {source.decision} on the topic {topic}, not {self._topics[source.decision]}"
            self._books.find("unexpected", source.partition, source.offset, reason)
        elif source.decision == REJECT:
            self._books.see(source, (message.key(), message.value()), version=number)
        else:
            fields, rules = self._known_rules.oracle(number).flagged_reader.read_flagged(message.value())
            self._books.see(source, fields and (message.key(), *fields), rules, number)

    def _expect(self, place: Place, message: Any, *, is_audited: bool) -> None:
        decisions = self._known_rules.decide(place, message.key(), message.value())
        if not is_audited:
            return
        failed = next((one for one in decisions.values() if one.failure), None)  # by one of the rules: it counts once
        number, due = next(iter(decisions.items()))
        due = failed or due
        is_valid = due.reason is None and not failed
        can_tell = not is_valid or self._can_tell(place, due, self._known_rules.oracle(number))
        for at, (number, own) in enumerate(decisions.items()):
            key, value = (None, None) if own.reason in _UNREAD else (message.key(), message.value())
            self._books.expect(
                place, key, value, failed or own, number,
                is_due=at == 0, can_tell=can_tell, approves=self._known_rules.all[number].approves,
            )  # fmt: skip
        if self._detection and is_valid and can_tell:
            self._detection.see(message.headers(), due.rules)


class _RowReader(_Reader):
    """Judges the rows of a query of the user's by `expect`, or by their places alone; partitions end at `ends`."""

    _source = staticmethod(read_place)

    def __init__(self, settings: Settings, books: Books, expect: Expect | None, ends: Offsets) -> None:
        super().__init__(settings, books)
        self._opinion, self._ends = expect, ends

    def figures(self) -> dict[str, Any]:
        """Without what can't be told where there is no `expect`."""
        untold = {} if self._opinion else {"lost": None, "expected": None, "not_told": NOT_TOLD}
        return super().figures() | untold

    def _see(self, message: Any, source: Source) -> None:
        if not 0 <= source.offset < self._ends.get(source.partition, 0):
            self._books.find("unexpected", source.partition, source.offset, "written, but there is no such record")
        elif self._books.covers(source):
            self._books.see_writer(source, message.timestamp()[1])
            self._books.see(source, (comparable(message.value()),))

    def _expect(self, place: Place, message: Any, *, is_audited: bool) -> None:  # noqa: ARG002 - each of them is
        if self._opinion is None:
            self._books.expect_row(place, ROW, is_due=False)
        else:
            record = Record(message.key(), message.value(), *place, message.headers() or [])
            self._books.expect_row(place, *ask(self._opinion, record))
