"""What `fraud-filter status` shows: the services, what Prometheus knows of the filter, and addresses.

Prometheus is asked by its HTTP API (Prometheus docs, "HTTP API", stable v1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import requests
from rich.console import Group, RenderableType
from rich.table import Table

from fraud_filter.compose import secrets
from fraud_filter.compose.stack import GRAFANA, LOCAL, ServiceState, Stack
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.client import read_password

#: For Prometheus' answer, in seconds.
TIMEOUT_S = 3.0
_NONE = "-"


Labels = Mapping[str, str]


@dataclass(frozen=True)
class Series:
    """One series and its value now; None where that is no number."""

    labels: Labels
    value: float | None


class Prometheus:
    """A Prometheus server at an http or https URL, which may hold a user and a password."""

    def __init__(self, url: str, timeout_s: float = 30.0, authority: Path | None = None) -> None:
        """`authority`: PEM file with the authority of its certificate; None: those that this machine trusts."""
        self._timeout_s = timeout_s
        self._verify = str(authority) if authority else True
        parts = urlsplit(url.rstrip("/"))
        #: The address without user name and password.
        self.address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        self._login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None

    def instant(self, query: str) -> list[Series]:
        """The value of a PromQL expression now.

        Raises:
            FraudFilterError: nothing answers at the address as Prometheus does, or it did not accept the query.
        """
        try:
            answer = requests.get(
                f"{self.address}/api/v1/query",
                params={"query": query},
                auth=self._login,
                timeout=self._timeout_s,
                verify=self._verify,
            )
            answer.raise_for_status()
            return [_series(found) for found in answer.json()["data"]["result"]]
        except (OSError, ValueError, KeyError, TypeError) as error:  # requests' own errors are an OSError
            raise FraudFilterError(f"Prometheus at {self.address} does not answer {query}: {error}") from None


def _series(found: Any) -> Series:
    value = float(found["value"][1])
    return Series(found["metric"], value if math.isfinite(value) else None)


def find_prometheus(stack: Stack, timeout_s: float = 30.0) -> Prometheus:
    """The Prometheus of the stack.

    Raises:
        UsageError: the file with its password can't be read.
    """
    address = f"{LOCAL}:{stack.value('PROMETHEUS_PORT')}"
    if not stack.secure:
        return Prometheus(f"http://{address}", timeout_s)
    directory = Path(stack.value("SECRETS_DIR"))
    login = f"{secrets.PROMETHEUS_USER}:{read_password(directory / secrets.PROMETHEUS_PASSWORD)}"
    return Prometheus(f"https://{login}@{address}", timeout_s, directory / secrets.CA)


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


def addresses(stack: Stack) -> list[tuple[str, str]]:
    """What it is, and its address; Grafana only where it runs."""

    def page(setting: str, path: str = "/") -> str:
        return f"http{'s' if stack.secure else ''}://{LOCAL}:{stack.value(setting)}{path}"

    grafana = any(state.service == GRAFANA for state in stack.states())
    if stack.secure:
        directory = Path(stack.value("SECRETS_DIR"))
        shown = [
            ("Kafka", f"{LOCAL}:{stack.value('KAFKA_PORT')}  user {secrets.OPERATOR}, password in {secrets.OPERATOR}"),
            (
                "Prometheus",
                f"{page('PROMETHEUS_PORT')}  user {secrets.PROMETHEUS_USER}, password in {secrets.PROMETHEUS_PASSWORD}",
            ),
        ]
        if grafana:
            shown.append(("Grafana", f"{page('GRAFANA_PORT')}  user admin, password in {secrets.GRAFANA_PASSWORD}"))
        return [*shown, ("passwords", f"files in {directory}; {secrets.CA} is the authority of all certificates")]
    kafka = f"{LOCAL}:{stack.value('KAFKA_PORT')}" if stack.own_kafka else stack.value("KAFKA_BOOTSTRAP_SERVERS")
    shown = [
        ("Kafka", kafka),
        ("filter's metrics", page("FRAUD_METRICS_PORT", "/metrics")),
        ("probe's metrics", page("FRAUD_PROBE_PORT", "/metrics")),
        ("Spark: the query", page("SPARK_UI_PORT")),
        ("Spark: the master", page("SPARK_MASTER_UI_PORT")),
        ("Prometheus", page("PROMETHEUS_PORT")),
    ]
    if grafana:
        shown.append(("Grafana", f"{page('GRAFANA_PORT')}  user admin, password: GRAFANA_PASSWORD in {stack.env}"))
    return shown


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


def screen(states: list[ServiceState], readings: Readings, addresses: list[tuple[str, str]]) -> RenderableType:
    """Services, figures and addresses, one below the other."""
    services = _grid()
    for state in states:
        services.add_row(state.service, f"[{'green' if state.ready else 'red'}]{state.word}[/]")
    figures = _grid()
    for name, value in figure_rows(readings):
        figures.add_row(name, value)
    places = _grid()
    for row in addresses:
        places.add_row(*row)
    return Group(services, "", figures, "", places)


def as_dict(states: list[ServiceState], readings: Readings, addresses: list[tuple[str, str]]) -> dict[str, Any]:
    """The same for JSON: whether all services are ready, each one's state, metrics in base units, addresses by name.

    A metric that is not known is None.
    """
    return {
        "ready": bool(states) and all(state.ready for state in states),
        "services": [{"service": state.service, "ready": state.ready, "state": state.word} for state in states],
        "metrics": asdict(readings),
        "addresses": {name: address.partition("  ")[0] for name, address in addresses},
    }


def figure_rows(readings: Readings) -> list[tuple[str, str]]:
    """Name and value with its unit; a dash where there is no value. What is held back is there when something is."""

    def shown(value: float | None, unit: str, digits: int = 0, factor: float = 1) -> str:
        return _NONE if value is None else f"{value * factor:.{digits}f} {unit}"

    latency = f"p50 {shown(readings.p50_s, 'ms', 1, 1000)}, p99 {shown(readings.p99_s, 'ms', 1, 1000)}"
    held = [("held back", f"{shown(readings.held, 'records')} of an open transaction")] if readings.held else []
    return [
        ("mode", readings.mode or _NONE),
        ("active, standby", f"{readings.active or _NONE}, {readings.standby or _NONE}"),
        ("records in", shown(readings.rate_in, "/s", 1)),
        ("flagged", shown(readings.flagged_rate, "/s", 1)),
        ("latency, last minute", latency),
        ("lag", shown(readings.lag, "records")),
        *held,
        ("last commit", shown(readings.commit_age_s, "s ago")),
    ]


def _grid() -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=20, no_wrap=True)
    table.add_column(overflow="fold")
    return table
