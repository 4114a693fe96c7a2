"""SIGTERM and SIGINT as a stop request, told outside of signal handlers."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def handled(numbers: Iterable[signal.Signals], act: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Within it these signals do `act`, in the main thread; use it there."""
    before = {number: signal.signal(number, act) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def on_stop_signals(act: Callable[[int], None]) -> Iterator[None]:
    """Within the block `act` is called with the number of each such signal, in a thread. Use it in the main thread.

    A handler runs in the main thread wherever that is: also where it holds the lock of the very event that the handler
    would set. `SimpleQueue.put` is made for handlers (Python's documentation of `queue`).
    """
    received: queue.SimpleQueue[int | None] = queue.SimpleQueue()

    def tell() -> None:
        for number in iter(received.get, None):
            act(number)

    threading.Thread(target=tell, name="stop-signals", daemon=True).start()
    try:
        with handled(_NUMBERS, lambda which, _frame: received.put(which)):
            yield
    finally:
        received.put(None)


@contextmanager
def stop_event() -> Iterator[threading.Event]:
    """An event that these signals set, instead of ending the program."""
    stop = threading.Event()
    with on_stop_signals(lambda _number: stop.set()):
        yield stop
