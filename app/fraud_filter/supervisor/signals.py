"""The stop request, from SIGTERM or SIGINT, and the guarantee that it is obeyed."""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil

from fraud_filter.errors import EXIT_FAILED
from fraud_filter.stop_signals import on_stop_signals
from fraud_filter.text.logs import get_logger

_log = get_logger(__name__)
#: Beyond the clean stop's own time: for what should end by itself once Java is gone.
_LAST_RESORT_S = 10.0


class Stop:
    """Set by the first signal. From then on the process ends within `timeout_s` + 10 seconds, whatever hangs."""

    def __init__(self, timeout_s: float) -> None:
        self.event = threading.Event()
        self.signal = ""
        self._timeout_s = timeout_s
        self._hasten: Callable[[], None] | None = None
        self._last_resort: threading.Timer | None = None

    @property
    def requested(self) -> bool:
        """Whether somebody wished to stop."""
        return self.event.is_set()

    def request(self, number: int) -> None:
        """The first wish counts; further signals change nothing."""
        if self.requested:
            return
        self.signal = signal.Signals(number).name
        self.event.set()
        self._last_resort = threading.Timer(self._timeout_s + _LAST_RESORT_S, _end_all)
        self._last_resort.daemon = True
        self._last_resort.start()
        if self._hasten:
            self._hasten()

    @contextmanager
    def hastened_by(self, act: Callable[[], None]) -> Iterator[None]:
        """Within the block a signal does `act` at once: for work that nobody needs to end well."""
        self._hasten = act
        try:
            if self.requested:
                act()
            yield
        finally:
            self._hasten = None

    def close(self) -> None:
        """The stop is done: the last resort is not needed."""
        if self._last_resort:
            self._last_resort.cancel()


@contextmanager
def stop_on_signals(timeout_s: float) -> Iterator[Stop]:
    """Handles SIGTERM and SIGINT while the block runs; to be used in the main thread."""
    stop = Stop(timeout_s)
    try:
        with on_stop_signals(stop.request):
            yield stop
    finally:
        stop.close()


def _end_all() -> None:
    """Ends this process and what it started, without asking. What was not committed is read again at the next start."""
    _log.error("stop_forced")
    faulthandler.dump_traceback(all_threads=True)  # what hung is in the log
    for child in psutil.Process().children(recursive=True):
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue
    os._exit(EXIT_FAILED)
