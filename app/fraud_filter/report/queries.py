"""The PromQL of a report. Every expression is of one query of the filter, named by the label `query`."""

from __future__ import annotations

import json
from dataclasses import dataclass

from fraud_filter.metrics import catalogue
from fraud_filter.modes import MODES
from fraud_filter.report.window import Window

#: Names of the queries that there is data of, by what the filter and what the probe says.
NAMES = " or ".join(
    f"count by (query) (count_over_time({metric}[{{window}}]))"
    for metric in (catalogue.UP.name, catalogue.FLAGGED.name)
)
#: Modes whose phases tell where the time of a batch goes. A real-time batch streams for as long as it is set to.
_BATCHES = "|".join(mode.name for mode in MODES.values() if mode.sends_progress and not mode.holds_tasks)
#: Prometheus' own look-back, in seconds.
_SEEN_S = 300
BUCKETS = f"{catalogue.LATENCY.name}_bucket"


@dataclass(frozen=True)
class Queries:
    """The expressions for one query and one window."""

    query: str
    window: Window

    def raw(self, metric: str, more: str = "") -> str:
        """The series of a metric, as they are."""
        return f"{metric}{{query={json.dumps(self.query, ensure_ascii=False)}{more}}}"

    @property
    def all(self) -> str:
        """The window, as a PromQL range."""
        return f"[{round(self.window.seconds)}s]"

    @property
    def _rate(self) -> str:
        return f"[{self.window.rate_s}s]"

    @property
    def buckets(self) -> str:
        """The counters of the latency histogram."""
        return self.raw(BUCKETS)

    def by_mode(self, metric: str) -> str:
        """The value of a metric in each mode; a counter's by other labels together."""
        return f"{'sum' if metric.endswith('_total') else 'max'} by (mode) ({self.raw(metric)})"

    @property
    def newest_samples(self) -> str:
        """How far back samples are looked at for the time between them, as a PromQL range."""
        return f"[{max(self.window.step_s, _SEEN_S)}s]"

    @property
    def objective(self) -> str:
        """The newest objective of each mode, in seconds."""
        return f"max by (mode) (last_over_time({self.raw(catalogue.OBJECTIVE.name)}{self.all}))"

    def newest(self, metric: str) -> str:
        """The newest sample of each series since the point before, also where it has ended meanwhile."""
        return f"last_over_time({self.raw(metric)}{self.newest_samples})"

    def ran(self, metric: str) -> str:
        """The largest value of a gauge in each mode since the point before: one for each stretch of data."""
        return f"max by (mode) (max_over_time({self.raw(metric)}{self._step}))"

    def grown(self, metric: str, by: str) -> str:
        """What counters grew by in the window, from all of their samples.

        Exact where a counter did not restart; elsewhere Prometheus' `increase`, which reaches beyond the first and
        the last sample by up to half a scrape.
        """
        counter = f"{self.raw(metric)}{self.all}"
        exact = f"last_over_time({counter}) - min_over_time({counter}) and resets({counter}) == 0"
        return f"sum by ({by}) ({exact} or increase({counter}))"

    def samples(self, metric: str) -> str:
        """How many samples of a gauge there are in each mode."""
        return f"sum by (mode) (count_over_time({self.raw(metric)}{self.all}))"

    def quantile(self, share: float) -> str:
        """Latency in seconds that a share of the newest decisions did not exceed."""
        return f"histogram_quantile({share}, sum by (le) (rate({self.buckets}{self._rate})))"

    def whole_quantile(self, share: float, by: str = "le") -> str:
        """The same for all decisions of the window; by "mode, le" for each mode."""
        return f"histogram_quantile({share}, sum by ({by}) (increase({self.buckets}{self.all})))"

    @property
    def input_rate(self) -> str:
        """Payments per second, by the ends of the partitions; commits are too rare for it in real-time mode."""
        grown = f"deriv({self.raw(catalogue.LATEST_OFFSET.name)}{self._rate})"
        return f"clamp_min(sum(max by (topic, partition) ({grown})), 0)"

    def rate(self, metric: str) -> str:
        """What all series of a counter grow by in a second."""
        return f"sum(rate({self.raw(metric)}{self._rate}))"

    @property
    def lag(self) -> str:
        """Lag of each partition: the largest since the point before."""
        return f"max by (partition) (max_over_time({self.raw(catalogue.CONSUMER_LAG.name)}{self._step}))"

    @property
    def whole_lag(self) -> str:
        """The largest lag of a partition in the window, by mode."""
        return f"max by (mode) (max_over_time({self.raw(catalogue.CONSUMER_LAG.name)}{self.all}))"

    @property
    def since_progress(self) -> str:
        """Seconds since the newest commit: the longest since the point before."""
        age = f"clamp_min(time() - max({self.raw(catalogue.LAST_PROGRESS.name)}), 0)"
        if self.window.step_s < 2 * self.window.scrape_s:
            return age
        return f"max_over_time(({age})[{self.window.step_s}s:{max(1, round(self.window.scrape_s))}s])"

    @property
    def phases(self) -> str:
        """Mean duration in seconds of each phase of the newest batches, where a mode works in batches."""
        metric = self.raw(catalogue.PHASE_DURATION.name, f',mode=~"{_BATCHES}"')
        return f"max by (phase) (avg_over_time({metric}{self._rate}))"

    @property
    def _step(self) -> str:
        return f"[{max(self.window.step_s, round(self.window.scrape_s * 1.5))}s]"
