"""Reads a filter's /metrics once a second while it is measured, as a Prometheus would: what that costs counts."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

import requests
from typing_extensions import Self

_EVERY_S = 1.0
_TIMEOUT_S = 2.0


class Scraper:
    """A thread of its own, for one port of this machine."""

    def __init__(self, port: int) -> None:
        #: How often the page was served.
        self.scrapes = 0
        self._url = f"http://127.0.0.1:{port}/metrics"
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scraper", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(_EVERY_S):
            with suppress(requests.RequestException):  # it starts, stops, or serves none
                self.scrapes += requests.get(self._url, timeout=_TIMEOUT_S).ok


def free_port() -> int:
    """A port of this machine that nothing listens on at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
