"""Asks a running filter's /metrics whether it is healthy."""

from __future__ import annotations

import time
from dataclasses import dataclass

import requests
from prometheus_client.parser import text_string_to_metric_families

from fraud_filter.config import Settings
from fraud_filter.metrics import local_http

_TIMEOUT_S = 3.0
_DIFFERS = "fraud_filter_standby_differs"


@dataclass(frozen=True)
class Verdict:
    """Whether the filter is healthy, and one line that says why. None where no filter answered, or nothing is known.

    `last_commit_age_s` is in seconds, `lag_records` the sum of all partitions.
    """

    healthy: bool
    line: str
    mode: str | None = None
    query: str | None = None
    state: str | None = None
    last_commit_age_s: float | None = None
    lag_records: float | None = None


def ask(settings: Settings) -> Verdict:
    """Reads the filter's metrics at `metrics_host`:`metrics_port`."""
    url = f"http://{settings.metrics_host}:{settings.metrics_port}/metrics"
    try:
        answer = local_http.get(url, _TIMEOUT_S)
        answer.raise_for_status()
    except requests.RequestException as error:
        return Verdict(False, f"no filter answers at {url}: {type(error).__name__}")
    try:
        return judge(answer.text, time.time())
    except ValueError:
        return Verdict(False, f"what answers at {url} is no filter: see metrics_port (FRAUD_METRICS_PORT)")


def judge(metrics: str, now: float) -> Verdict:
    """Judges the text of /metrics at the time `now`, in s since 1970. A standby is healthy once it can take over."""
    values: dict[str, float] = {}
    labels: dict[str, str] = {}
    state = "not started"
    for family in text_string_to_metric_families(metrics):
        for sample in family.samples:
            if sample.name.startswith("fraud_filter_"):
                values[sample.name] = values.get(sample.name, 0.0) + sample.value
                labels = sample.labels
            if sample.name == "fraud_filter_state" and sample.value:
                state = sample.labels["state"].replace("-", " ")
    mode, query = labels.get("mode", "?"), labels.get("query", "?")
    last = values.get("fraud_filter_last_progress_timestamp_seconds")
    age_s = now - last if last else None
    age = "no commit yet" if age_s is None else f"last commit {age_s:.0f} s ago"
    healthy = bool(values.get("fraud_filter_healthy"))
    if state == "standby":
        unlike = ", with other rules or settings than the active filter" if values.get(_DIFFERS) else ""
        return Verdict(True, f"{query} is a standby in {mode} mode, ready to take over{unlike}")
    if values.get("fraud_filter_up"):
        state = "active"
        needed, granted = (values.get(f"fraud_filter_task_slots_{which}", 0.0) for which in ("needed", "granted"))
        if not healthy:
            state = f"short of task slots ({granted:.0f} of {needed:.0f})" if granted < needed else "stalled"
    lag = values.get("fraud_filter_consumer_lag_records")
    shown = f", lag {lag:.0f} records" if lag is not None else ""
    return Verdict(healthy, f"{query} is {state} in {mode} mode, {age}{shown}", mode, query, state, age_s, lag)
