"""Compares what was written with what should have been, payment by payment, from the topics alone.

What should have been is decided by `oracle`, not by the query. Delivery is at-least-once in every mode: duplicates are
counted, and are no fault; lost and unexpected ones are.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fraud_filter.audit_gaps import Gap, Recorded, find_gaps
from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from fraud_filter.ledger import FLAGGED, REJECTED, Finding, Ledger
from fraud_filter.offsets import find_bounds, find_partitions, open_consumer, read_records
from fraud_filter.oracle import Decision, Oracle
from fraud_filter.record_size import is_too_large
from fraud_filter.rules import load_rules
from fraud_filter.schema import REASON_TOO_LARGE, load_schema
from fraud_filter.source_headers import read_source

_TOO_LARGE = Decision(REASON_TOO_LARGE, (), ())

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AuditResult:
    """What an audit found. All are counts of payments unless they say records.

    `payments` were read; `expected` of them should be flagged and `rejected_expected` rejected. `written` flagged
    records belong to them, copies too; `rejected` payments have a rejected record. `lost` should have been flagged or
    rejected and were not; `undecided` of these come after the last decision of their partition, so that a filter that
    lags may still have them to decide. `duplicated` counts extra copies (records). `unexpected` counts records that
    should not be there: flagged or rejected without cause, with other rules, key, fields or bytes than the payment's,
    or without readable source headers. `reject_reasons` counts the expected rejected records by their own reason.
    `gaps` are offsets that Kafka removed before they were decided, as far as a checkpoint tells of them.
    """

    start: dict[int, int]
    end: dict[int, int]
    payments: int
    expected: int
    written: int
    lost: int
    undecided: int
    duplicated: int
    unexpected: int
    rejected: int
    rejected_expected: int
    reject_reasons: dict[str, int]
    examples: dict[str, tuple[Finding, ...]]
    took_s: float
    gaps: tuple[Gap, ...] = ()

    @property
    def ok(self) -> bool:
        """Nothing lost, nothing unexpected, nothing removed before it was decided."""
        return self.lost == 0 and self.unexpected == 0 and not self.gaps

    @property
    def removed(self) -> int:
        """Payments that were removed before they were decided."""
        return sum(gap.end - gap.start for gap in self.gaps)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        plain = {name: value for name, value in vars(self).items() if name != "examples"}
        examples = {kind: [finding._asdict() for finding in found] for kind, found in self.examples.items()}
        gaps = [gap._asdict() for gap in self.gaps]
        return {"ok": self.ok, **plain, "removed": self.removed, "gaps": gaps, "examples": examples}


def audit(
    settings: Settings,
    *,
    start: Mapping[int, int] | None = None,
    end: Mapping[int, int] | None = None,
    settle_s: float = 0.0,
    examples: int = 10,
    recorded: Recorded | None = None,
) -> AuditResult:
    """Audits the payments from offset `start` to before `end` of each partition of the input topic.

    Partitions that `start` or `end` does not name are taken from their first retained record, or to their current
    end. Whole output topics are read; records of payments outside the range, or of another topic, are left out.

    Args:
        settings: brokers, topics, payment schema and rules.
        start: first offset by partition. Records that are no longer retained are left out.
        end: offset after the last one, by partition.
        settle_s: seconds between finding the end of the input and that of the outputs, for a query that is running.
        examples: how many findings of each kind to keep.
        recorded: what the filter's checkpoint tells of payments that are gone.

    Raises:
        UsageError: no broker, a missing topic, offsets outside the topic, a schema or rules that can't be audited.
        FraudFilterError: the broker stopped answering, or a rule can't be evaluated.
    """
    began = time.monotonic()
    schema = load_schema(settings.payment_schema)
    oracle = Oracle(schema, load_rules(settings.rules, schema))
    outputs = (settings.flagged_topic, settings.rejected_topic)
    with open_consumer(settings) as consumer:
        topics = find_partitions(consumer, settings, ("input_topic", "flagged_topic", "rejected_topic"))
        bounds = find_bounds(consumer, settings, settings.input_topic, topics[settings.input_topic])
        first, last = _range(settings, bounds, start or {}, end or {})
        ledger = Ledger(schema, first, last, examples)
        settled = time.monotonic() + settle_s
        payments = _read_payments(settings, oracle, ledger, first, last)
        time.sleep(max(0.0, settled - time.monotonic()))
        written = {topic: find_bounds(consumer, settings, topic, topics[topic]) for topic in outputs}
    for topic, limits in written.items():
        _read_output(settings, oracle, ledger, topic, limits)
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
        if wanted < low and partition in start:
            _log.warning("event=records_gone topic=%s partition=%d from=%d to=%d", topic, partition, wanted, low)
        first[partition] = min(max(wanted, low), last[partition])
    return first, last


def _read_payments(
    settings: Settings, oracle: Oracle, ledger: Ledger, start: Mapping[int, int], end: Mapping[int, int]
) -> int:
    payments = 0
    for batch in read_records(settings, settings.input_topic, start, end):
        payments += len(batch)
        contents = [
            None if is_too_large(message.key(), message.value(), settings) else (message.key(), message.value())
            for message in batch
        ]
        decisions = oracle.decide([content and content[1] for content in contents])
        for message, content, decision in zip(batch, contents, decisions, strict=True):
            key, value = content or (None, None)
            ledger.expect(message.partition(), message.offset(), key, value, decision if content else _TOO_LARGE)
    return payments


def _read_output(
    settings: Settings, oracle: Oracle, ledger: Ledger, topic: str, bounds: Mapping[int, tuple[int, int]]
) -> None:
    start = {partition: low for partition, (low, _) in bounds.items()}
    end = {partition: high for partition, (_, high) in bounds.items()}
    for batch in read_records(settings, topic, start, end):
        for message in batch:
            source = read_source(message.headers())
            if source is None:
                ledger.see_unreadable(message.partition(), message.offset(), topic)
            elif source.topic != settings.input_topic or not ledger.covers(source):
                continue
            elif topic == settings.rejected_topic:
                ledger.see_rejected(source, message.key(), message.value())
            else:
                fields, rules = _flagged(oracle, message.value())
                ledger.see_flagged(source, message.key(), fields, rules)


def _flagged(oracle: Oracle, value: bytes | None) -> tuple[tuple[Any, ...] | None, tuple[str, ...]]:
    """Fields and rules of a flagged record's value; None for fields that can't be read."""
    try:
        reading, rules = oracle.reader.read_flagged(value or b"")
    except (ValueError, RecursionError):
        return None, ()
    return (reading.fields if reading.reason is None else None), rules
