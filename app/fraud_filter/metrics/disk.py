"""How much room the disk below the checkpoint has: a full one stops every mode at its next commit."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from prometheus_client.core import Metric

from fraud_filter.metrics import catalogue
from fraud_filter.metrics.server import Registry


class DiskMetrics:
    """The size of that disk and what is free on it, asked at each scrape.

    No sample where the checkpoint is not on a local disk (its file system has a monitoring of its own), and none while
    the directory is not there.
    """

    def __init__(self, registry: Registry, checkpoint: Path | None) -> None:
        """`checkpoint`: its directory, or None."""
        self._checkpoint = checkpoint
        registry.register(self)  # a collector by its `collect`

    def collect(self) -> Iterator[Metric]:
        """Called by the registry at each scrape."""
        size: list[tuple[tuple[str, ...], float]] = []
        free: list[tuple[tuple[str, ...], float]] = []
        with suppress(OSError):
            if self._checkpoint is not None:
                found = shutil.disk_usage(self._checkpoint)
                size, free = [((), found.total)], [((), found.free)]
        yield catalogue.DISK_SIZE.collected(size)
        yield catalogue.DISK_FREE.collected(free)
