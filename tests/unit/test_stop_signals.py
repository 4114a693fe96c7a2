"""Signals become calls in a thread, whatever the main thread does when they come."""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fraud_filter.config import load
from fraud_filter.stop_signals import on_stop_signals, stop_event
from fraud_filter.supervisor.query_run import Ending
from fraud_filter.supervisor.signals import Stop


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_told_and_its_handler_is_restored(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    told: queue.SimpleQueue[int] = queue.SimpleQueue()
    with on_stop_signals(told.put):
        os.kill(os.getpid(), number)
        assert told.get() == number
    assert signal.getsignal(number) == before


def test_a_signal_comes_through_while_the_main_thread_holds_the_event_s_lock() -> None:
    with stop_event() as stop:
        with cast("Any", stop)._cond:  # as `wait` does for an instant
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.1)
        assert stop.wait(60)


def test_the_wait_for_a_query_s_end_goes_on_after_a_slow_signal_handler() -> None:
    runs = threading.Event()
    query = cast("Any", SimpleNamespace(awaitTermination=runs.wait))
    ending = Ending(query, load(), cast("Any", None), gives_way=False)
    stop = Stop(5)
    before = signal.signal(signal.SIGUSR1, lambda *_: time.sleep(0.3))  # longer than the wait looks away
    timers = [
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)),
        threading.Timer(0.8, stop.request, (signal.SIGTERM,)),
        threading.Timer(60, runs.set),  # a query that ends frees a wait that hangs
    ]
    try:
        for timer in timers:
            timer.start()
        assert ending.wait(cast("Any", SimpleNamespace(returncode=None)), stop) is None
    finally:
        signal.signal(signal.SIGUSR1, before)
        for timer in timers:
            timer.cancel()
        runs.set()
        stop.close()
