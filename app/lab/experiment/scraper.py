"""Reads a filter's /metrics once a second while it is measured, as a Prometheus would: what that costs counts."""

from __future__ import annotations

from contextlib import suppress

from fraud_filter.metrics.server import get_page
from lab.harness.periodic import Periodic

_EVERY_S = 1.0
_TIMEOUT_S = 2.0


class Scraper(Periodic):
    """For one port of this machine."""

    def __init__(self, port: int) -> None:
        super().__init__("scraper", _EVERY_S)
        #: How often the page was served.
        self.scrapes = 0
        self._port = port

    def look(self) -> None:
        """Reads the page."""
        with suppress(OSError):  # it starts, stops, or serves none
            self.scrapes += get_page("127.0.0.1", self._port, "/metrics", _TIMEOUT_S)[0] == 200
