"""What a run of the generator reports, during it (metrics) and at its end: the pace intended and kept, and what became
of the records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from prometheus_client.core import Metric

from fraud_filter.errors import UsageError
from fraud_filter.metrics.catalogue import FAILED, LATE, SENT
from fraud_filter.metrics.server import Registry
from fraud_filter.schema import HEADER_LABEL

#: A record sent later than this after it was due counts as late.
LATE_MS = 10


@dataclass(frozen=True)
class Lateness:
    """How long after it was due a record was handed to the Kafka client, in milliseconds."""

    p50: float
    p99: float
    max: float


@dataclass(frozen=True)
class Report:
    """One run. Rates are payments/s from when the first record was due until the last one was due (intended) or
    sent (kept); None where that is no interval.

    `failed` counts records that the brokers did not confirm; `error` is the first reason given. `flagged` and
    `malformed` count what was made so on purpose; `flagged` is None, not known, for a replayed file. `fraud` counts
    payments of labelled fraud; None where nothing is labelled.
    """

    topic: str
    seed: int | None
    duration_s: float
    intended_rate: float | None
    kept_rate: float | None
    sent: int
    delivered: int
    failed: int
    error: str | None
    flagged: int | None
    malformed: int
    late: int
    lateness_ms: Lateness
    fraud: int | None = None

    def text(self) -> str:
        """A few lines for a person."""
        lateness = self.lateness_ms
        lines = [
            f"records       {self.sent} sent to {self.topic} in {self.duration_s:.1f} s, "
            f"{self.delivered} delivered, {self.failed} failed",
            f"rate          {_per_second(self.kept_rate)} kept, {_per_second(self.intended_rate)} intended",
            f"lateness      p50 {lateness.p50:.2f} ms, p99 {lateness.p99:.2f} ms, max {lateness.max:.2f} ms; "
            f"{self.late} sent more than {LATE_MS} ms late",
            f"made flagged  {'not known' if self.flagged is None else self.flagged}",
            f"malformed     {self.malformed}",
        ]
        if self.fraud is not None:
            lines.append(f"fraud         {self.fraud}, in the header {HEADER_LABEL!r}")
        if self.seed is not None:
            lines.append(f"seed          {self.seed}")
        if self.error is not None:
            lines.append(f"first error   {self.error}")
        return "\n".join(lines)

    def write(self, path: Path) -> None:
        """Writes the report as one JSON object.

        Raises:
            UsageError: the file can't be written.
        """
        try:
            path.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--report {path} can't be written: {error.strerror}") from None


def _per_second(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.1f}/s"


class GeneratorCounts(Protocol):
    """What `GeneratorMetrics` reads of the generator: numbers of records since the start."""

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
        yield SENT.collected([((), self._source.sent)])
        yield FAILED.collected([((), self._source.failed)])
        yield LATE.collected([((), self._source.late)])
