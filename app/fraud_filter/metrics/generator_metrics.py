"""The metrics of the generator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from prometheus_client.core import Metric

from fraud_filter.metrics import catalogue
from fraud_filter.metrics.server import Registry


class GeneratorCounts(Protocol):
    """What `GeneratorMetrics` reads of the generator: numbers of payments since the start."""

    @property
    def sent(self) -> int: ...  # noqa: D102
    @property
    def failed(self) -> int: ...  # noqa: D102
    @property
    def late(self) -> int: ...  # noqa: D102


class GeneratorMetrics:
    """What the generator has done, read from it at each scrape, so that sending pays nothing for it."""

    def __init__(self, registry: Registry, source: GeneratorCounts) -> None:
        self._source = source
        registry.register(self)  # a collector by its `collect`

    def collect(self) -> Iterator[Metric]:
        """Called by the registry at each scrape."""
        yield catalogue.SENT.collected([((), self._source.sent)])
        yield catalogue.FAILED.collected([((), self._source.failed)])
        yield catalogue.LATE.collected([((), self._source.late)])
