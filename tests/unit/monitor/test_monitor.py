"""What the monitor logs of a query's trouble, with the verdicts of a watchdog."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import closing

import pytest

from fraud_filter.config import load
from fraud_filter.modes import MODES
from fraud_filter.monitor.monitor import Monitor
from fraud_filter.monitor.pulse import Pulse
from fraud_filter.monitor.watchdog import WARM_UP_S, Watchdog
from lab.harness.processes import free_ports


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
        end = time.monotonic() + 15
        while sum("monitor_failed" in message for message in caplog.messages) < 3 and time.monotonic() < end:
            time.sleep(0.1)
        over.set()
        worker.join()
    assert sum("monitor_failed" in message for message in caplog.messages) >= 3
