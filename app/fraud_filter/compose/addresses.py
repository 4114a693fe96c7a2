"""Where the stack's pages are, on this machine."""

from __future__ import annotations

from fraud_filter.compose.stack import GRAFANA, Stack

_HOST = "127.0.0.1"


def addresses(stack: Stack) -> list[tuple[str, str]]:
    """What it is, and its address; Grafana only where it runs."""

    def page(setting: str, path: str = "/") -> str:
        return f"http://{_HOST}:{stack.value(setting)}{path}"

    shown = [
        ("Kafka", f"{_HOST}:{stack.value('KAFKA_PORT')}"),
        ("filter's metrics", page("FRAUD_METRICS_PORT", "/metrics")),
        ("probe's metrics", page("FRAUD_PROBE_PORT", "/metrics")),
        ("Spark: the query", page("SPARK_UI_PORT")),
        ("Spark: the master", page("SPARK_MASTER_UI_PORT")),
        ("Prometheus", page("PROMETHEUS_PORT")),
    ]
    if any(state.service == GRAFANA for state in stack.states()):
        shown.append(("Grafana", f"{page('GRAFANA_PORT')}  user admin, password: GRAFANA_PASSWORD in {stack.env}"))
    return shown
