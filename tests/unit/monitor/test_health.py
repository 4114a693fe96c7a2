from __future__ import annotations

from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from prometheus_client import generate_latest

from fraud_filter.checkpoint.progress import Progress
from fraud_filter.config import load
from fraud_filter.metrics.filter_metrics import FilterMetrics
from fraud_filter.metrics.server import MetricsServer, Registry
from fraud_filter.monitor.health import ask, judge


def test_a_filter_is_asked_over_http() -> None:
    registry = Registry()
    metrics = FilterMetrics(registry, mode="continuous", query="fraud-filter", topic="payments")
    server = MetricsServer(registry, "127.0.0.1", 0, "metrics_port")
    settings = load({"metrics_port": server.port})
    try:
        assert ask(settings).line.startswith("fraud-filter is not started in continuous mode")
        assert not ask(settings).healthy
        metrics.set_up(True, True)
        metrics.observe(Progress(7, {0: 1}, {0: 5}, 4, at=1_000_000.0), 1)
        metrics.set_offsets({0: 5, 1: 9}, {0: 8, 1: 9})
        verdict = ask(settings)
    finally:
        server.stop()
    assert verdict.healthy
    assert "fraud-filter is active in continuous mode, last commit" in verdict.line
    assert verdict.line.endswith("lag 3 records")
    assert (verdict.mode, verdict.query, verdict.state, verdict.lag_records) == (
        "continuous",
        "fraud-filter",
        "active",
        3,
    )
    assert verdict.last_commit_age_s is not None
    assert verdict.last_commit_age_s > 0
    assert not ask(settings).healthy
    assert "no filter answers at" in ask(settings).line


def test_a_stalled_filter_is_not_well() -> None:
    text = 'fraud_filter_up{mode="continuous",query="q"} 1\nfraud_filter_healthy{mode="continuous",query="q"} 0\n'
    verdict = judge(text, 5.0)
    assert not verdict.healthy
    assert verdict.line == "q is stalled in continuous mode, no commit yet"


def test_a_standby_is_well_once_it_can_take_over() -> None:
    registry = Registry()
    metrics = FilterMetrics(registry, mode="continuous", query="q", topic="payments")
    metrics.set_state("warming-up")
    assert not judge(generate_latest(registry).decode(), 5.0).healthy
    metrics.set_state("standby")
    verdict = judge(generate_latest(registry).decode(), 5.0)
    assert verdict.healthy
    assert verdict.line == "q is a standby in continuous mode, ready to take over"
    metrics.set_differs(True)
    assert judge(generate_latest(registry).decode(), 5.0).line.endswith(
        ", with other rules or settings than the active filter"
    )


def test_no_proxy_is_asked_for_what_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    server = MetricsServer(Registry(), "127.0.0.1", 0, "metrics_port")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    try:
        assert "no filter answers" not in ask(load({"metrics_port": server.port})).line
    finally:
        server.stop()


def test_another_page_is_no_filter() -> None:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<!doctype html>\n<title>Hello</title>\n")

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        verdict = ask(load({"metrics_port": server.server_port}))
        thread.join()
    assert not verdict.healthy
    assert "is no filter: see metrics_port" in verdict.line


def test_a_partition_that_is_gone_has_no_offsets_any_more() -> None:
    registry = Registry()
    metrics = FilterMetrics(registry, mode="continuous", query="q", topic="t")

    def lags() -> dict[str, float]:
        samples = (sample for family in registry.collect() for sample in family.samples)
        return {s.labels["partition"]: s.value for s in samples if s.name == "fraud_filter_consumer_lag_records"}

    metrics.set_offsets({0: 5, 1: 5, 2: 10}, {0: 5, 1: 6, 2: 700})
    assert lags() == {"0": 0, "1": 1, "2": 690}
    metrics.set_offsets({0: 5, 1: 5, 2: 10}, {})  # no broker answers
    assert lags() == {"0": 0, "1": 1, "2": 690}
    metrics.set_offsets({0: 5, 1: 5, 2: 10}, {0: 5, 1: 7})  # recreated with two partitions
    assert lags() == {"0": 0, "1": 2}
    committed = {s.labels.get("partition") for f in registry.collect() for s in f.samples if "committed" in s.name}
    assert committed == {"0", "1"}


def test_of_a_partition_without_a_leader_the_end_and_the_lag_are_unknown() -> None:
    registry = Registry()
    metrics = FilterMetrics(registry, mode="continuous", query="q", topic="t")

    def values(name: str) -> dict[str, float]:
        samples = (sample for family in registry.collect() for sample in family.samples)
        return {s.labels.get("partition", ""): s.value for s in samples if s.name == f"fraud_filter_{name}"}

    metrics.set_offsets({0: 5, 1: 5}, {0: 5, 1: 6}, partitions=(0, 1))
    metrics.set_offsets({0: 5, 1: 5}, {0: 9}, partitions=(0, 1))
    assert values("consumer_lag_records") == {"0": 4}
    assert values("latest_offset") == {"0": 9}
    assert values("committed_offset") == values("read_offset") == {"0": 5, "1": 5}
    assert values("unknown_partitions") == {"": 1}


def test_lag_counts_from_what_tasks_have_read_where_that_is_beyond_the_commit() -> None:
    registry = Registry()
    metrics = FilterMetrics(registry, mode="real-time", query="q", topic="t")
    metrics.set_offsets({0: 5, 1: 5}, {0: 9, 1: 9, 2: 9}, told={0: 7, 1: 3, 2: 1})
    samples = [sample for family in registry.collect() for sample in family.samples]
    lags = {s.labels["partition"]: s.value for s in samples if s.name == "fraud_filter_consumer_lag_records"}
    assert lags == {"0": 2, "1": 4, "2": 8}
