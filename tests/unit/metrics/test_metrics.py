"""The probe's latencies, the filter's disk, and the server of both."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fraud_filter.errors import UsageError
from fraud_filter.metrics.filter_metrics import DiskMetrics
from fraud_filter.metrics.probe_metrics import ProbeMetrics
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


def disk_below(checkpoint: Path | None) -> tuple[float | None, float | None]:
    registry = Registry()
    DiskMetrics(registry, checkpoint)
    name = "fraud_filter_checkpoint_disk_"
    return registry.get_sample_value(f"{name}size_bytes"), registry.get_sample_value(f"{name}free_bytes")


def test_size_and_room_are_those_of_the_disk_below_the_checkpoint(tmp_path: Path) -> None:
    size, room = disk_below(tmp_path)
    assert size == shutil.disk_usage(tmp_path).total
    assert room is not None
    assert 0 < room <= size
    for unknown in (None, Path("/nowhere/checkpoint")):
        assert disk_below(unknown) == (None, None)
