"""The probe's metrics: names, labels, and what exists before anything was measured."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fraud_filter.errors import UsageError
from fraud_filter.metrics.probe_metrics import REJECT_REASONS, ProbeMetrics
from fraud_filter.metrics.server import MetricsServer, Registry

LABELS = {"mode": "continuous", "query": "q"}


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def metrics(registry: Registry) -> ProbeMetrics:
    return ProbeMetrics(registry, mode="continuous", query="q", objective_ms=20)


@pytest.fixture
def server(registry: Registry) -> Iterator[MetricsServer]:
    server = MetricsServer(registry, "127.0.0.1", 0, "probe_port")
    yield server
    server.stop()


def test_counters_exist_from_the_start_and_the_last_output_does_not(registry: Registry, metrics: ProbeMetrics) -> None:
    assert metrics
    for name in ("flagged", "duplicate", "unreadable", "negative_latency"):
        assert registry.get_sample_value(f"fraud_filter_{name}_records_total", LABELS) == 0
    for reason in REJECT_REASONS:
        name = "fraud_filter_rejected_records_total"
        assert registry.get_sample_value(name, {**LABELS, "reason": reason}) == 0
    assert registry.get_sample_value("fraud_filter_end_to_end_latency_seconds_count", LABELS) == 0
    assert registry.get_sample_value("fraud_filter_last_output_timestamp_seconds", LABELS) is None


def test_latency_is_in_seconds_and_fine_around_the_fast_modes(registry: Registry, metrics: ProbeMetrics) -> None:
    metrics.observe_latency(4)
    name = "fraud_filter_end_to_end_latency_seconds"
    assert registry.get_sample_value(f"{name}_sum", LABELS) == pytest.approx(0.004)
    assert registry.get_sample_value(f"{name}_bucket", {**LABELS, "le": "0.003"}) == 0
    assert registry.get_sample_value(f"{name}_bucket", {**LABELS, "le": "0.004"}) == 1


def test_slow_is_what_took_longer_than_the_objective(registry: Registry, metrics: ProbeMetrics) -> None:
    assert registry.get_sample_value("fraud_filter_latency_objective_seconds", LABELS) == 0.02
    assert registry.get_sample_value("fraud_filter_slow_decisions_total", LABELS) == 0
    for latency_ms in (0, 20, 21, 5000):
        metrics.observe_latency(latency_ms)
    assert registry.get_sample_value("fraud_filter_slow_decisions_total", LABELS) == 2


def test_a_port_in_use_is_a_usage_error(server: MetricsServer) -> None:
    with pytest.raises(UsageError, match=rf"probe_port .*port {server.port} of 127.0.0.1 is in use"):
        MetricsServer(Registry(), "127.0.0.1", server.port, "probe_port")


def test_an_address_of_another_machine_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"192\.0\.2\.1:0 can't be listened on"):
        MetricsServer(Registry(), "192.0.2.1", 0, "probe_port")
