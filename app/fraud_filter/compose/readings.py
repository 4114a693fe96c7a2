"""What the stack's Prometheus knows of the filter now."""

from __future__ import annotations

from dataclasses import dataclass

from fraud_filter.compose.prometheus import Prometheus, Series
from fraud_filter.errors import FraudFilterError

#: For Prometheus' answer, in seconds.
TIMEOUT_S = 3.0


@dataclass(frozen=True)
class Readings:
    """Figures of the last minute; None where there is none. Rates per second, latencies and ages in seconds."""

    mode: str | None = None
    rate_in: float | None = None
    flagged_rate: float | None = None
    p50_s: float | None = None
    p99_s: float | None = None
    lag: float | None = None
    #: Records that an open transaction holds back from a reader of committed records.
    held: float | None = None
    commit_age_s: float | None = None
    #: The service of the active filter, and of a standby that can take over.
    active: str | None = None
    standby: str | None = None


def read(prometheus: Prometheus) -> Readings:
    """Asks Prometheus; every figure is None when it does not answer."""

    def number(query: str) -> float | None:
        found = _ask(prometheus, query)
        return found[0].value if found else None

    def quantile(share: float) -> float | None:
        buckets = "sum by (le) (rate(fraud_filter_end_to_end_latency_seconds_bucket[1m]))"
        return number(f"histogram_quantile({share}, {buckets})")

    def label(query: str, name: str) -> str | None:
        found = _ask(prometheus, query)
        return found[0].labels.get(name) if found else None

    return Readings(
        mode=label("fraud_filter_up == 1", "mode") or label("fraud_filter_up", "mode"),
        # By the ends of the partitions: what is committed moves only every few minutes in real-time mode.
        rate_in=number("sum(deriv(fraud_filter_latest_offset[1m]))"),
        flagged_rate=number("sum(rate(fraud_filter_flagged_records_total[1m]))"),
        p50_s=quantile(0.5),
        p99_s=quantile(0.99),
        lag=number("sum(fraud_filter_consumer_lag_records)"),
        held=number("sum(fraud_filter_held_records)"),
        commit_age_s=number("time() - max(fraud_filter_last_progress_timestamp_seconds)"),
        active=label("fraud_filter_up == 1", "job"),
        standby=label('fraud_filter_state{state="standby"} == 1', "job"),
    )


def _ask(prometheus: Prometheus, query: str) -> list[Series]:
    try:
        return prometheus.instant(query)
    except FraudFilterError:
        return []
