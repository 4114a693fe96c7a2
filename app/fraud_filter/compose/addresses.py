"""Where the stack's pages are, on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from fraud_filter.compose import env_file
from fraud_filter.compose.stack import GRAFANA, Stack

_HOST = "127.0.0.1"


def prometheus_address(env: Path) -> str:
    """URL of the Prometheus of the stack that an environment file describes; of `.env.example` where there is none.

    Needs no Docker Engine. As in a `Stack`, the environment wins over the file.

    Raises:
        UsageError: the file can't be read.
    """
    name = "PROMETHEUS_PORT"
    files = [file for file in (env, env_file.EXAMPLE) if file.exists()]
    ports = (os.environ.get(name), *(env_file.read(file).get(name) for file in files))
    return f"http://{_HOST}:{next(port for port in ports if port)}"


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
