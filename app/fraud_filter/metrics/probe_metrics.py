"""The metrics of the probe."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from fraud_filter import schema as layout
from fraud_filter.metrics.catalogue import (
    APPROVED,
    DUPLICATE,
    FLAGGED,
    LATE_WRITES,
    LATENCY,
    NEGATIVE_LATENCY,
    OBJECTIVE,
    REJECTED,
    RULE_MATCHES,
    SCORE,
    SLOW,
    TRUNCATED,
    UNREADABLE,
    Entry,
    Made,
    Metrics,
)
from fraud_filter.metrics.server import Registry

#: The only values of the label `reason`; whatever else a record says is counted as `other`.
REJECT_REASONS = (
    *(layout.REASON_EMPTY, layout.REASON_MALFORMED, layout.REASON_MISSING, layout.REASON_WRONG_TYPE),
    *(layout.REASON_TOO_LARGE, layout.REASON_TRAILING, layout.REASON_DUPLICATE, layout.REASON_NO_SCHEMA_ID),
    *(layout.REASON_RECORD_TIME, layout.REASON_LATE, layout.REASON_UNDECIDABLE, "other"),
)
#: Values of labels that records bring are told apart up to so many; those that come later are `other`.
MOST_VALUES = 1000
_OTHER = "other"
_NAME, _VERSION = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}"), re.compile(r"[0-9a-f]{0,64}")
#: What the values of a label that records bring look like.
_FORMS = {"rule": _NAME, "feature": _NAME, "version": _VERSION}


class ProbeMetrics(Metrics):
    """What the probe measures, labelled with the execution mode and the name of the query.

    Counters exist from the start, so that a rate can be taken of the first record. `last_output_timestamp_seconds`
    does not exist before there was an output.
    """

    def __init__(self, registry: Registry, *, mode: str, query: str, objective_ms: int) -> None:
        """`objective_ms`: decisions that take longer, in milliseconds, are counted as slow."""
        super().__init__(registry, "probe", (mode, query))
        self._objective_ms = objective_ms
        self.of(OBJECTIVE).set(objective_ms / 1000)
        counters = (SLOW, FLAGGED, APPROVED, DUPLICATE, LATE_WRITES, UNREADABLE, NEGATIVE_LATENCY)
        from_the_start: tuple[Entry[Any], ...] = (LATENCY, *counters)
        for entry in from_the_start:
            self.of(entry)
        for reason in REJECT_REASONS:
            self.of(REJECTED, reason)
        self._known: dict[Entry[Any], set[tuple[str, ...]]] = {RULE_MATCHES: set(), TRUNCATED: set(), SCORE: set()}

    def count_matches(self, rules: Iterable[str], version: str) -> None:
        """A flagged record names `rules`."""
        for rule in rules:
            self.bounded(RULE_MATCHES, rule, version).inc()

    def count_rejected(self, reason: str) -> None:
        """One rejected record was read. `reason` is its reject.reason header; only the part before ':' counts."""
        kind = reason.partition(":")[0]
        self.of(REJECTED, kind if kind in REJECT_REASONS else _OTHER).inc()

    def observe_latency(self, latency_ms: int) -> None:
        """A record was decided for the first time, after `latency_ms` milliseconds."""
        self.of(LATENCY).observe(latency_ms / 1000)
        if latency_ms > self._objective_ms:
            self.of(SLOW).inc()

    def bounded(self, entry: Entry[Made], *values: str) -> Made:
        """The series of values that a record brings, or that of `other`.

        What others write into records has no bound; the number of series has one.
        """
        known = self._known[entry]
        if values not in known:
            forms = (_FORMS[label] for label in entry.labels[-len(values) :])
            are_right = (form.fullmatch(value) for form, value in zip(forms, values, strict=True))
            if len(known) >= MOST_VALUES or not all(are_right):
                values = (_OTHER,) * len(values)
            known.add(values)
        return self.of(entry, *values)
