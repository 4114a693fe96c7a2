"""Prometheus' own linter on what our programs serve."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import certifi
import pytest
from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics, generate_latest

from fraud_filter.checkpoint.progress import Progress
from fraud_filter.config import load
from fraud_filter.generator.sender import GeneratorMetrics, Tally
from fraud_filter.metrics.catalogue import DUPLICATE, FLAGGED, LAST_OUTPUT
from fraud_filter.metrics.filter_metrics import CertificateMetrics, ExecutorMetrics, FilterMetrics
from fraud_filter.metrics.probe_metrics import REJECT_REASONS, ProbeMetrics
from fraud_filter.spark.executors import Executor

LABELS = {"mode": "micro-batch", "query": "q"}


def _filter(registry: CollectorRegistry) -> None:
    metrics = FilterMetrics(registry, **LABELS, topic="payments")
    metrics.set_up(True, True)
    metrics.set_slots(2, 4)
    metrics.observe(Progress(1, {0: 0}, {0: 5}, 5, 1_700_000_000.5, 5.0, {"addBatch": 0.1}), 1)
    metrics.set_offsets({0: 5}, {0: 7})
    CertificateMetrics(registry, load({"kafka_security_protocol": "SSL", "kafka_ssl_ca": certifi.where()}))
    ExecutorMetrics(registry, **LABELS).set([Executor("0", 2, 1, 7, 1, 0.25, {"heap": 1000})])


def _probe(registry: CollectorRegistry) -> None:
    metrics = ProbeMetrics(registry, **LABELS, objective_ms=20)
    metrics.of(FLAGGED).inc()
    metrics.count_rejected(REJECT_REASONS[0])
    metrics.of(DUPLICATE).inc()
    metrics.observe_latency(4)
    metrics.of(LAST_OUTPUT).set(1_700_000_000.123)


def _generator(registry: CollectorRegistry) -> None:
    GeneratorMetrics(registry, Tally(sent=3, failed=1, late=2))


def _check(promtool: str, page: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [promtool, "check", "metrics"],
        input=page,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("fill", [_filter, _probe, _generator], ids=["filter", "probe", "generator"])
def test_metrics_keep_to_prometheus_conventions(promtool: str, fill: Callable[[CollectorRegistry], None]) -> None:
    disable_created_metrics()  # type: ignore[no-untyped-call]  # as the server of the metrics does
    registry = CollectorRegistry()
    fill(registry)
    ProcessCollector(registry=registry)
    page = generate_latest(registry)
    assert page.count(b"# HELP fraud_filter_") > 2
    checked = _check(promtool, page)
    assert (checked.returncode, checked.stdout) == (0, b"")


def test_the_linter_finds_what_is_against_them(promtool: str) -> None:
    checked = _check(promtool, b"# HELP x_ms Time.\n# TYPE x_ms counter\nx_ms 1\n")
    assert checked.returncode != 0
