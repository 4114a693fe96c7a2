"""The metrics of the probe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Generic

from prometheus_client.core import Metric

from fraud_filter import schema as layout
from fraud_filter.metrics import catalogue
from fraud_filter.metrics.catalogue import Made
from fraud_filter.metrics.server import Registry
from fraud_filter.metrics.tally import ProbeSnapshot

#: Seconds. Fine where the fast modes are (1 to 20 ms), coarse where a backlog shows (up to 60 s).
LATENCY_BUCKETS_S = (
    *(0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.008, 0.01, 0.012, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075),
    *(0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0),
)
#: The only values of the label `reason`; whatever else a record says is counted as `other`.
REJECT_REASONS = (
    *(layout.REASON_EMPTY, layout.REASON_MALFORMED, layout.REASON_MISSING, layout.REASON_WRONG_TYPE),
    *(layout.REASON_TOO_LARGE, layout.REASON_TRAILING, layout.REASON_DUPLICATE, layout.REASON_NO_SCHEMA_ID),
    *(layout.REASON_RECORD_TIME, layout.REASON_LATE, layout.REASON_UNDECIDABLE, "other"),
)
#: Fine at both ends, where a good model's scores are.
SCORE_BUCKETS = (0.01, 0.05, *(tenth / 10 for tenth in range(1, 10)), 0.95, 0.99, 1.0)
#: Values of labels that records bring are told apart up to so many; those that come later are `other`.
MOST_VALUES = 1000
_OTHER = "other"
_NAME, _VERSION = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}"), re.compile(r"[0-9a-f]{0,64}")


class ProbeMetrics:
    """What the probe measures, labelled with the execution mode and the name of the query.

    Counters exist from the start, so that a rate can be taken of the first record. `last_output_timestamp_seconds`
    does not exist before there was an output.
    """

    def __init__(self, registry: Registry, *, mode: str, query: str, objective_ms: int) -> None:
        """`objective_ms`: decisions that take longer, in milliseconds, are counted as slow."""
        self._labels = labels = (mode, query)
        self._latency = catalogue.LATENCY.make(registry, buckets=LATENCY_BUCKETS_S).labels(*labels)
        catalogue.OBJECTIVE.make(registry).labels(*labels).set(objective_ms / 1000)
        self._objective_ms = objective_ms
        self._slow = catalogue.SLOW.make(registry).labels(*labels)
        self._flagged = catalogue.FLAGGED.make(registry).labels(*labels)
        self._matches = _Bounded(catalogue.RULE_MATCHES.make(registry), labels, _NAME, _VERSION)
        self._truncated = _Bounded(catalogue.TRUNCATED.make(registry), labels, _NAME)
        self._scores = _Bounded(catalogue.SCORE.make(registry, buckets=SCORE_BUCKETS), labels, _VERSION)
        rejected = catalogue.REJECTED.make(registry)
        self._rejected = {reason: rejected.labels(*labels, reason) for reason in REJECT_REASONS}
        self._duplicate = catalogue.DUPLICATE.make(registry).labels(*labels)
        self._unreadable = catalogue.UNREADABLE.make(registry).labels(*labels)
        self._negative = catalogue.NEGATIVE_LATENCY.make(registry).labels(*labels)
        self._last_output = catalogue.LAST_OUTPUT.make(registry)
        self._interval = IntervalLatency(registry, labels)

    def count_flagged(self) -> None:
        """One flagged record was read."""
        self._flagged.inc()

    def count_matches(self, rules: Iterable[str], version: str) -> None:
        """A flagged record names `rules`."""
        for rule in rules:
            self._matches.of(rule, version).inc()

    def count_truncated(self, features: Iterable[str]) -> None:
        """A flagged record names features whose window may be cut short."""
        for feature in features:
            self._truncated.of(feature).inc()

    def observe_score(self, score: float, version: str) -> None:
        """A flagged record has a score, from 0 to 1, of a model."""
        self._scores.of(version).observe(score)

    def count_rejected(self, reason: str) -> None:
        """One rejected record was read. `reason` is its reject.reason header; only the part before ':' counts."""
        kind = reason.partition(":")[0]
        self._rejected[kind if kind in self._rejected else "other"].inc()

    def count_duplicate(self) -> None:
        """A payment was decided again."""
        self._duplicate.inc()

    def count_unreadable(self) -> None:
        """A record had no readable source headers."""
        self._unreadable.inc()

    def count_negative(self) -> None:
        """A latency was below zero."""
        self._negative.inc()

    def observe_latency(self, latency_ms: int) -> None:
        """A payment was decided for the first time, after `latency_ms` milliseconds."""
        self._latency.observe(latency_ms / 1000)
        if latency_ms > self._objective_ms:
            self._slow.inc()

    def set_interval(self, figures: ProbeSnapshot) -> None:
        """The latencies of the interval that has just ended."""
        self._interval.figures = figures

    def set_last_output(self, timestamp_ms: int) -> None:
        """The newest output's append time, in milliseconds since 1970."""
        self._last_output.labels(*self._labels).set(timestamp_ms / 1000)


class _Bounded(Generic[Made]):
    """A metric with labels that records bring: what others may write there has no bound; the series have one."""

    def __init__(self, metric: Made, labels: tuple[str, str], *forms: re.Pattern[str]) -> None:
        """`labels`: values of the first ones; `forms`: of the others, in their order."""
        self._metric, self._labels, self._forms = metric, labels, forms
        self._known: set[tuple[str, ...]] = set()

    def of(self, *values: str) -> Made:
        """The series of these values, or that of `other`."""
        if values not in self._known:
            are_right = (form.fullmatch(value) for form, value in zip(self._forms, values, strict=True))
            if len(self._known) >= MOST_VALUES or not all(are_right):
                values = (_OTHER,) * len(values)
            self._known.add(values)
        return self._metric.labels(*self._labels, *values)


class IntervalLatency:
    """Exact percentiles of the last interval, beside the histogram, whose buckets make its own approximate.

    A summary without sum and count, which are the histogram's; `quantile="1"` is the maximum. A quantile is NaN when
    there was no decision to measure in the interval, as in every client's summaries.
    """

    def __init__(self, registry: Registry, labels: tuple[str, str]) -> None:
        """Without a sample until `figures` are set."""
        self.figures: ProbeSnapshot | None = None
        self._labels = labels
        registry.register(self)  # a collector by its `collect`

    def collect(self) -> Iterator[Metric]:
        """Called by the registry at each scrape."""
        yield catalogue.INTERVAL_LATENCY.collected(self._quantiles())

    def _quantiles(self) -> Iterator[tuple[tuple[str, ...], float]]:
        if figures := self.figures:
            for quantile, latency_ms in (
                ("0.5", figures.p50_ms),
                ("0.95", figures.p95_ms),
                ("0.99", figures.p99_ms),
                ("1", figures.max_ms),
            ):
                value = float("nan") if latency_ms is None else latency_ms / 1000
                yield (*self._labels, quantile), value
