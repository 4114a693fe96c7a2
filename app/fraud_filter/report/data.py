"""Everything that a report shows, asked of Prometheus. Knows neither plots nor pages."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.metrics import catalogue
from fraud_filter.report.counting import covered_s, total_growth
from fraud_filter.report.events import Event, Span, find_events, find_spans
from fraud_filter.report.prometheus import Prometheus, Series
from fraud_filter.report.queries import BUCKETS, NAMES, Queries
from fraud_filter.report.window import Window, format_duration

#: Steps without a point that still count as one stretch of data: one scrape may fail.
_GAP_STEPS = 2.5
#: Assumed where there are too few samples to tell; Prometheus' own default is 60 s.
_SCRAPE_S = 15.0
_FLAGGED, _REJECTED = catalogue.FLAGGED.name, catalogue.REJECTED.name
_SHARES = (0.5, 0.95, 0.99)
_UP, _INPUT = catalogue.UP.name, catalogue.LATEST_OFFSET.name
_COUNTERS = {
    "flagged": _FLAGGED,
    "rejected": _REJECTED,
    "duplicates": catalogue.DUPLICATE.name,
    "restarts": catalogue.RESTARTS.name,
}

#: Decisions by upper limit of their latency in seconds, in ascending order; the last limit is infinity.
Distribution = Mapping[float, float]


@dataclass(frozen=True)
class Figures:
    """Figures of one mode, or of all of them. None is not known, never zero. Counts are records.

    `seconds` is for how long there is data of the filter; `rate` the payments per second; `lag` the largest lag of a
    partition; `within` the share of the decisions that took no longer than `objective_ms`, each
    mode its own.
    """

    mode: str
    seconds: float
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    within: float | None
    objective_ms: float | None
    rate: float | None
    lag: float | None
    flagged: float | None
    rejected: float | None
    duplicates: float | None
    restarts: float | None


@dataclass(frozen=True)
class ReportData:
    """What a report tells. Curves are by name, with a point every `window.step_s` seconds where there is data."""

    window: Window
    query: str
    address: str
    total: Figures
    modes: Sequence[Figures]
    spans: Sequence[Span]
    events: Sequence[Event]
    distributions: Mapping[str, Distribution] = field(default_factory=dict)
    latency_s: Mapping[str, Series] = field(default_factory=dict)
    rates: Mapping[str, Series] = field(default_factory=dict)
    lags: Mapping[str, Series] = field(default_factory=dict)
    phases_s: Mapping[str, Series] = field(default_factory=dict)
    since_progress_s: Series | None = None


def collect(prometheus: Prometheus, since_s: float, query: str | None = None, end: float | None = None) -> ReportData:
    """Asks for everything of the last `since_s` seconds before `end` (seconds since 1970; now).

    Raises:
        UsageError: Prometheus does not answer, or there is no such query, or there are several and none is named.
        FraudFilterError: there is no data, or Prometheus did not finish.
    """
    end = time.time() if end is None else end
    window = Window(end - since_s, end)
    queries = Queries(_choose(prometheus, window, query), window)
    window = replace(window, scrape_s=_scrape_s(prometheus, queries))
    return _Collector(prometheus, Queries(queries.query, window)).collect()


def _choose(prometheus: Prometheus, window: Window, wanted: str | None) -> str:
    """The name of the query that is reported."""
    found = prometheus.instant(NAMES.format(window=f"{round(window.seconds)}s"), window.end)
    names = sorted({series.labels.get("query", "") for series in found})
    if not names:
        raise FraudFilterError(
            f"Prometheus at {prometheus.address} has no data of the filter in the last "
            f"{format_duration(window.seconds)}: see its page /targets, or look further back with a longer --since"
        )
    if wanted is None and len(names) > 1:
        raise UsageError(f"there is data of several queries: choose one with --query ({', '.join(names)})")
    if wanted is not None and wanted not in names:
        raise UsageError(
            f"argument --query: there is no data of {wanted!r} in the last {format_duration(window.seconds)}: "
            f"there is of {', '.join(names)}"
        )
    return wanted or names[0]


def _scrape_s(prometheus: Prometheus, queries: Queries) -> float:
    """Seconds between two samples, by the newest ones."""
    for metric in (_UP, _FLAGGED):
        seen = prometheus.range(queries.newest(metric), queries.window)
        ends = [series.points[-1][0] for series in seen if series.points]
        if ends:
            samples = prometheus.instant(queries.raw(metric) + queries.newest_samples, max(ends))
            gaps = [now - before for series in samples for (before, _), (now, _) in pairwise(series.points)]
            return statistics.median(gaps) if gaps else _SCRAPE_S
    return _SCRAPE_S


class _Collector:
    def __init__(self, prometheus: Prometheus, queries: Queries) -> None:
        self._prometheus = prometheus
        self._queries = queries
        self._window = queries.window
        self._gap_s = self._window.step_s * _GAP_STEPS
        self._counters = {name: self._count(metric) for name, metric in _COUNTERS.items()}
        self._slow = self._count(catalogue.SLOW.name)
        self._objectives_s = self._by_mode(queries.objective)
        self._buckets = self._count(BUCKETS, "mode, le")
        self._input, self._up = (self._range(queries.raw(metric)) for metric in (_INPUT, _UP))

    def collect(self) -> ReportData:
        ask = self._queries
        up = self._range(ask.by_mode(_UP))
        spans = find_spans(self._range(ask.ran(_UP)) if self._window.is_coarse else up, self._gap_s)
        modes = list(dict.fromkeys([*(span.mode for span in spans), *_modes(self._counters["flagged"])]))
        distributions = {mode: _distribution(self._buckets, mode=mode) for mode in modes}
        restarts, commits = (
            self._range(ask.by_mode(counter.name)) for counter in (catalogue.RESTARTS, catalogue.COMMITS)
        )
        return ReportData(
            window=self._window,
            query=ask.query,
            address=self._prometheus.address,
            total=self._total(),
            modes=self._rows(distributions),
            spans=spans,
            events=find_events(spans, up, restarts, commits, self._gap_s),
            distributions={mode: found for mode, found in distributions.items() if sum(found.values()) > 0},
            latency_s=self._curves({f"p{share * 100:g}": ask.quantile(share) for share in _SHARES}),
            rates=self._curves(
                {"input": ask.input_rate, "flagged": ask.rate(_FLAGGED), "rejected": ask.rate(_REJECTED)}
            ),
            lags=self._by_label(ask.lag, "partition"),
            phases_s=self._by_label(ask.phases, "phase"),
            since_progress_s=next(iter(self._range(ask.since_progress)), None),
        )

    def _rows(self, distributions: Mapping[str, Distribution]) -> list[Figures]:
        ask = self._queries
        quantiles = [self._by_mode(ask.whole_quantile(share, "mode, le")) for share in _SHARES]
        lags = self._by_mode(ask.whole_lag)
        return [
            self._figures(mode, [found.get(mode) for found in quantiles], distribution, lags.get(mode), mode=mode)
            for mode, distribution in distributions.items()
        ]

    def _total(self) -> Figures:
        ask = self._queries
        quantiles = [next(iter(self._by_mode(ask.whole_quantile(share)).values()), None) for share in _SHARES]
        largest = max(self._by_mode(ask.whole_lag).values(), default=None)
        return self._figures("all", quantiles, _distribution(self._buckets), largest)

    def _figures(
        self,
        name: str,
        quantiles_s: Sequence[float | None],
        distribution: Distribution,
        lag: float | None,
        **labels: str,
    ) -> Figures:
        grown = {counter: total_growth(series, math.inf, **labels) for counter, series in self._counters.items()}
        # What came in while there was no data came in during another mode, or none.
        taken, took_s = (measure(self._input, self._gap_s, **labels) for measure in (total_growth, covered_s))
        decided = sum(distribution.values())
        slow = total_growth(self._slow, math.inf, **labels)
        objective_s = self._objectives_s.get(name)
        p50_ms, p95_ms, p99_ms = (None if value is None else value * 1000 for value in quantiles_s)
        return Figures(
            mode=name,
            seconds=self._seconds(**labels),
            p50_ms=p50_ms,
            p95_ms=p95_ms,
            p99_ms=p99_ms,
            within=max(0.0, 1 - slow / decided) if decided and slow is not None else None,
            objective_ms=None if objective_s is None else objective_s * 1000,
            rate=taken / took_s if took_s and taken is not None else None,
            lag=lag,
            **grown,
        )

    def _count(self, metric: str, by: str = "mode") -> list[Series]:
        """Counters, each from its first point to its last; where there are too few points, what they grew by."""
        if not self._window.is_coarse:
            return self._range(self._queries.raw(metric))
        grown = self._prometheus.instant(self._queries.grown(metric, by), self._window.end)
        start, end = self._window.start, self._window.end
        return [replace(one, points=((start, 0.0), (end, one.points[-1][1]))) for one in grown if one.points]

    def _seconds(self, **labels: str) -> float:
        """For how long there is data of the filter."""
        if not self._window.is_coarse:
            return covered_s(self._up, self._gap_s, **labels)
        chosen = (one for one in self._samples if labels.items() <= one.labels.items())
        return self._window.scrape_s * sum(one.points[-1][1] for one in chosen if one.points)

    @cached_property
    def _samples(self) -> list[Series]:
        """How many samples of the filter there are in each mode."""
        return self._prometheus.instant(self._queries.samples(_UP), self._window.end)

    def _range(self, expression: str) -> list[Series]:
        return [series for series in self._prometheus.range(expression, self._window) if series.points]

    def _curves(self, expressions: Mapping[str, str]) -> dict[str, Series]:
        found = {name: self._range(expression) for name, expression in expressions.items()}
        return {name: series[0] for name, series in found.items() if series}

    def _by_label(self, expression: str, label: str) -> dict[str, Series]:
        found = {series.labels.get(label, ""): series for series in self._range(expression)}
        return {name: found[name] for name in sorted(found, key=lambda name: (len(name), name))}

    def _by_mode(self, expression: str) -> dict[str, float]:
        found = self._prometheus.instant(expression, self._window.end)
        return {series.labels.get("mode", ""): series.points[-1][1] for series in found if series.points}


def _modes(series: Sequence[Series]) -> list[str]:
    return [one.labels.get("mode", "") for one in sorted(series, key=lambda one: one.points[0][0])]


def _distribution(buckets: Sequence[Series], **labels: str) -> Distribution:
    """Decisions by the bucket that they fell into; a classic histogram counts those of the smaller ones as well."""
    limits = sorted({float(series.labels["le"]) for series in buckets})
    names = {float(series.labels["le"]): series.labels["le"] for series in buckets}
    cumulative = [total_growth(buckets, math.inf, le=names[limit], **labels) or 0.0 for limit in limits]
    return {
        limit: max(0.0, now - before)
        for limit, before, now in zip(limits, [0.0, *cumulative], cumulative, strict=False)
    }
