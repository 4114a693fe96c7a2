"""Who is alive, ready and healthy, by pages and verb, and what the monitor logs of trouble."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler

import pytest

from fraud_filter.checkpoint.progress import Progress
from fraud_filter.cli.watch import ask
from fraud_filter.config import load
from fraud_filter.kafka.admin import Bounds
from fraud_filter.metrics.filter_metrics import FilterMetrics
from fraud_filter.metrics.server import Registry, get_page
from fraud_filter.modes import MODES
from fraud_filter.monitor.health import SILENT_S, Condition, Streak, judge_alive, judge_ready
from fraud_filter.monitor.input_watch import Seen
from fraud_filter.monitor.monitor import Monitor, moves
from fraud_filter.monitor.pulse import Pulse
from fraud_filter.monitor.watchdog import WARM_UP_S, Verdict, Watchdog
from lab.harness.processes import free_ports
from serving import Quiet, serve


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    """That of a filter whose source is not Kafka."""
    settings = load({"source": "rate", "mode": "micro-batch", "metrics_port": 0})
    with closing(Monitor(settings, ())) as made:
        yield made


def served(monitor: Monitor, path: str) -> tuple[int, str]:
    status, body = get_page("127.0.0.1", monitor.port, path, 5)
    return status, json.loads(body)["line"]


def test_a_filter_that_has_not_started_is_alive_and_not_ready(monitor: Monitor) -> None:
    monitor.set_state("starting")
    assert served(monitor, "/healthz") == (200, "fraud-filter is alive")
    assert served(monitor, "/readyz") == (503, "fraud-filter is starting in micro-batch mode, no commit yet")
    verdict = ask(load({"metrics_port": monitor.port}))
    assert not verdict["healthy"]
    assert (verdict["mode"], verdict["query"], verdict["state"]) == ("micro-batch", "fraud-filter", "starting")


def test_restarts_without_progress_are_neither_alive_nor_ready_until_a_query_commits(monitor: Monitor) -> None:
    for _ in range(2):
        monitor.streak.fail("no space left", waits_for_others=False)
    assert served(monitor, "/healthz")[0] == 200
    monitor.streak.fail("no space left", waits_for_others=False)
    monitor.set_state("running")  # as each new run is, for some seconds
    reason = "3 restarts in a row without progress, the last: no space left"
    assert served(monitor, "/healthz") == (503, f"fraud-filter is not alive: {reason}")
    status, line = served(monitor, "/readyz")
    assert status == 503
    assert line.startswith("fraud-filter is in a restart loop in micro-batch mode")
    assert line.endswith(reason)
    monitor.set_state("standby")
    assert served(monitor, "/readyz")[0] == 503
    monitor._report(Progress(7, {0: 1}, {0: 5}, 4, at=1_000_000.0))
    assert served(monitor, "/healthz")[0] == served(monitor, "/readyz")[0] == 200


def test_a_program_that_waits_for_others_is_alive(monitor: Monitor) -> None:
    for _ in range(3):
        monitor.streak.fail("no broker answered", waits_for_others=True)
    monitor.set_state("backing-off")
    assert served(monitor, "/healthz")[0] == 200
    assert served(monitor, "/readyz")[0] == 503


def test_a_monitor_that_hangs_is_not_alive() -> None:
    known = Condition("continuous", "q", looked_at=10.0)
    assert judge_alive(known, Streak(60), 10.0 + SILENT_S).healthy
    assert not judge_alive(known, Streak(60), 11.0 + SILENT_S).healthy


def test_no_filter_is_told_with_its_address(monitor: Monitor) -> None:
    settings = load({"metrics_port": monitor.port})
    monitor.close()
    verdict = ask(settings)
    assert verdict["line"] == f"no filter answers at http://127.0.0.1:{monitor.port}: Connection refused"
    assert not verdict["healthy"]


def test_a_query_is_ready_once_it_moves() -> None:
    known = Condition("real-time", "q", looked_at=0.0, state="running", lag_records=3.0)
    line = "q is starting to read in real-time mode, no commit yet, lag 3 records"
    assert judge_ready(known, Streak(60), 5.0).line == line
    known.moves = True
    known.last_commit_at = 3.0
    verdict = judge_ready(known, Streak(60), 5.0)
    assert verdict.healthy
    assert verdict.line == "q is active in real-time mode, last commit 2 s ago, lag 3 records"
    assert (verdict.state, verdict.last_commit_age_s, verdict.lag_records) == ("active", 2.0, 3.0)


@pytest.mark.parametrize(
    ("committed", "read", "ends", "told"),
    [
        ({}, {}, {0: 5, 1: 9}, True),  # nothing waits
        ({}, {}, {0: 6, 1: 9}, False),
        ({0: 6}, {}, {0: 9, 1: 9}, True),
        ({0: 5}, {1: 10}, {0: 9, 1: 99}, True),
        ({0: 4}, {0: 5}, {0: 9}, False),
    ],
)
def test_a_query_moves_when_it_has_read_or_nothing_waits(
    committed: dict[int, int], read: dict[int, int], ends: dict[int, int], told: bool
) -> None:
    seen = Seen("id", frozenset(ends), {number: Bounds(0, end, 0) for number, end in ends.items()}, ends)
    assert moves({0: 5, 1: 9}, committed, seen, Pulse(0, (), (), read)) is told
    assert moves({0: 5, 1: 9}, committed, None, None) is (0 in committed and committed[0] > 5)


def test_a_query_that_something_keeps_from_reading_is_not_ready() -> None:
    known = Condition("continuous", "q", looked_at=0.0, state="running", moves=True, lag_records=0.0, waits="it waits")
    assert (
        judge_ready(known, Streak(60), 5.0).line
        == "q is held up in continuous mode, no commit yet, lag 0 records: it waits"
    )
    assert judge_alive(known, Streak(60), 5.0).healthy


def test_a_stalled_filter_is_not_ready() -> None:
    trouble = Verdict("the query made no progress", "stalled", "no-progress")
    known = Condition("continuous", "q", looked_at=0.0, state="running", trouble=trouble, moves=True)
    verdict = judge_ready(known, Streak(60), 5.0)
    assert not verdict.healthy
    assert verdict.line == "q is stalled in continuous mode, no commit yet: the query made no progress"


def test_a_standby_is_ready_once_it_can_take_over(monitor: Monitor) -> None:
    monitor.set_state("warming-up")
    assert served(monitor, "/readyz")[0] == 503
    monitor.set_state("standby")
    line = "fraud-filter is a standby in micro-batch mode, ready to take over"
    assert served(monitor, "/readyz") == (200, line)
    monitor.set_differs(True)
    assert served(monitor, "/readyz") == (200, f"{line}, with other rules or settings than the active filter")


def test_no_proxy_is_asked_for_what_is_here(monkeypatch: pytest.MonkeyPatch, monitor: Monitor) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert "no filter answers" not in ask(load({"metrics_port": monitor.port}))["line"]


@pytest.mark.parametrize("body", [b"<!doctype html>\n<title>Hello</title>\n", b"[]", b"7", b"[" * 100_000, b"\xff"])
def test_another_page_is_no_filter(body: bytes) -> None:
    class Page(Quiet, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

    with serve(Page) as address:
        verdict = ask(load({"metrics_port": address.rpartition(":")[2]}))
    assert not verdict["healthy"]
    assert "is no filter: see metrics_port" in verdict["line"]


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
    metrics.set_offsets({0: 5, 1: 5}, {0: 9, 1: 9, 2: 9}, tasks_read={0: 7, 1: 3, 2: 1})
    samples = [sample for family in registry.collect() for sample in family.samples]
    lags = {s.labels["partition"]: s.value for s in samples if s.name == "fraud_filter_consumer_lag_records"}
    assert lags == {"0": 2, "1": 4, "2": 8}


@pytest.mark.parametrize("host", ["a b", "\x00", "\x1b[2J", " ", "x" * 300, "a..b", "é" * 70, "[", "::1", "a/b"])
def test_a_host_that_is_none_is_told_in_one_sentence(host: str) -> None:
    verdict = ask(load({"metrics_host": host, "metrics_port": 1}))
    assert verdict["healthy"] is False
    assert verdict["line"].startswith("no filter answers at http://")
    assert verdict["line"].isprintable()


# -- what the monitor logs of a query's trouble, with the verdicts of a watchdog


def test_another_trouble_is_logged_though_one_is_there_and_the_same_with_other_numbers_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    monitor = Monitor(load({"metrics_port": 0}), ())
    dog = Watchdog(partitions=2, mode=MODES["continuous"], patience_s=60, commit_s=0, now=0)
    late = 63 + int(WARM_UP_S)
    for now, ends in ((1, {0: 1, 1: 1, 2: 1}), (2, {0: 1, 1: 1, 2: 2, 3: 1}), (late, {0: 9, 1: 9, 2: 9, 3: 9})):
        monitor._log_trouble(dog.look(now, {0: 1, 1: 1}, ends, Pulse(now, (), ())))
    lacking, stalled = [record.getMessage() for record in caplog.records if "unhealthy" in record.getMessage()]
    assert "the application has 0 task slots" in lacking
    assert "and the query made no progress" in stalled


def test_looks_come_each_second_though_other_threads_work(caplog: pytest.LogCaptureFixture) -> None:
    nobody, port = free_ports(2)
    settings = load({"kafka_bootstrap_servers": f"127.0.0.1:{nobody}", "kafka_timeout_s": 1, "metrics_port": port})
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            pass

    worker = threading.Thread(target=work)
    with closing(Monitor(settings, ())):
        worker.start()
        end = time.monotonic() + 30
        while sum("monitor_failed" in message for message in caplog.messages) < 3 and time.monotonic() < end:
            time.sleep(0.1)
        over.set()
        worker.join()
    assert sum("monitor_failed" in message for message in caplog.messages) >= 3
