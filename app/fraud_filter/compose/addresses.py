"""Where the stack's pages are, on this machine."""

from __future__ import annotations

from pathlib import Path

from fraud_filter.compose import secrets
from fraud_filter.compose.prometheus import Prometheus
from fraud_filter.compose.stack import GRAFANA, Stack
from fraud_filter.kafka.client import read_password

_HOST = "127.0.0.1"


def find_prometheus(stack: Stack, timeout_s: float = 30.0) -> Prometheus:
    """The Prometheus of the stack.

    Raises:
        UsageError: the file with its password can't be read.
    """
    address = f"{_HOST}:{stack.value('PROMETHEUS_PORT')}"
    if not stack.secure:
        return Prometheus(f"http://{address}", timeout_s)
    directory = Path(stack.value("SECRETS_DIR"))
    login = f"{secrets.PROMETHEUS_USER}:{read_password(directory / secrets.PROMETHEUS_PASSWORD)}"
    return Prometheus(f"https://{login}@{address}", timeout_s, directory / secrets.CA)


def addresses(stack: Stack) -> list[tuple[str, str]]:
    """What it is, and its address; Grafana only where it runs."""

    def page(setting: str, path: str = "/") -> str:
        return f"http{'s' if stack.secure else ''}://{_HOST}:{stack.value(setting)}{path}"

    grafana = any(state.service == GRAFANA for state in stack.states())
    if stack.secure:
        directory = Path(stack.value("SECRETS_DIR"))
        shown = [
            ("Kafka", f"{_HOST}:{stack.value('KAFKA_PORT')}  user {secrets.OPERATOR}, password in {secrets.OPERATOR}"),
            (
                "Prometheus",
                f"{page('PROMETHEUS_PORT')}  user {secrets.PROMETHEUS_USER}, password in {secrets.PROMETHEUS_PASSWORD}",
            ),
        ]
        if grafana:
            shown.append(("Grafana", f"{page('GRAFANA_PORT')}  user admin, password in {secrets.GRAFANA_PASSWORD}"))
        return [*shown, ("passwords", f"files in {directory}; {secrets.CA} is the authority of all certificates")]
    kafka = f"{_HOST}:{stack.value('KAFKA_PORT')}" if stack.own_kafka else stack.value("KAFKA_BOOTSTRAP_SERVERS")
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
