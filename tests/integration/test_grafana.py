"""Grafana is well and knows Prometheus and the dashboard, where its image can be had."""

from __future__ import annotations

import pytest
from grafana_api.grafana_face import GrafanaFace

from deployed import Deployed
from waiting import wait_until


@pytest.fixture
def grafana(stack: Deployed) -> GrafanaFace:
    now = stack.open()
    if not any(state.service == "grafana" for state in now.states()):
        pytest.skip(f"no registry gives {now.value('GRAFANA_IMAGE')}")
    return GrafanaFace(
        auth=("admin", now.value("GRAFANA_PASSWORD")), host="127.0.0.1", port=int(now.value("GRAFANA_PORT"))
    )


def test_it_is_healthy_and_knows_prometheus_and_the_dashboard(grafana: GrafanaFace) -> None:
    assert grafana.api.GET("/health")["database"] == "ok"
    assert [source["url"] for source in grafana.datasource.list_datasources()] == ["http://prometheus:9090"]
    # It reads them once it answers.
    assert wait_until("a dashboard", lambda: grafana.search.search_dashboards(type_="dash-db"))
