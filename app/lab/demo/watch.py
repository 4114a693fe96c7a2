"""How a running mode is seen from outside: the output through the probe, and the input topic's end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError
from fraud_filter.kafka.input_topic import InputTopic, open_input, records_between
from fraud_filter.probe.probe import Probe
from lab.bench.launch import Enter, Phase
from lab.bench.results.percentiles import grouped_percentile
from lab.demo.live import Announce, ModeStatus
from lab.harness.periodic import Periodic

_EVERY_S = 1.0


@contextmanager
def watched(status: ModeStatus, announce: Announce, settings: Settings) -> Iterator[Enter]:
    """Keeps the status of a mode up to date and shows it, while the mode runs on the topics of the settings.

    Raises:
        UsageError: no broker answers within `kafka_timeout_s` seconds, or a topic is missing.
    """
    with Probe(settings) as probe, open_input(settings) as topic, _Observer(probe, topic, status) as observer:

        def enter(phase: Phase, seconds: float) -> None:
            if phase == "measuring":
                observer.begin()
            status.enter(phase, seconds)
            announce(status)

        yield enter


class _Observer(Periodic):
    """What it shows is for the eye; the results are read back from the topics afterwards."""

    def __init__(self, probe: Probe, topic: InputTopic, status: ModeStatus) -> None:
        super().__init__("observer", _EVERY_S)
        self._probe = probe
        self._topic = topic
        self._status = status
        self._arrived = time.monotonic(), topic.end_offsets()
        self._before: Counter[int] = Counter()

    def begin(self) -> None:
        """Latencies count from now on."""
        with suppress(FraudFilterError):
            self._before = Counter(self._probe.distribution())

    def look(self) -> None:
        """Brings the status up to date; what can't be seen stays as it was."""
        with suppress(FraudFilterError):
            status, snapshot = self._status, self._probe.snapshot()
            now, end = time.monotonic(), self._topic.end_offsets()
            since, arrived = self._arrived
            status.rate = records_between(arrived, end) / (now - since)
            self._arrived = now, end
            reached = {partition: newest + 1 for partition, newest in snapshot.source_offsets.items()}
            status.lag = records_between(reached, end)
            status.flagged, status.rejected = snapshot.flagged, snapshot.rejected
            status.distribution = Counter(self._probe.distribution()) - self._before
            status.p50_ms, status.p99_ms = (grouped_percentile(status.distribution, at) for at in (50, 99))
