"""How a running mode is seen from outside: the output through the probe, the input topic's end, and the lag between."""

from __future__ import annotations

import time
from collections.abc import Mapping

from fraud_filter.kafka.input_topic import InputTopic, records_between
from fraud_filter.probe.probe import Probe
from lab.demo.live import ModeStatus

#: The rate is taken over at least this many seconds, for it is counted in whole records.
_RATE_OVER_S = 0.5


class Observer:
    """Watches one mode from the offsets `start` of the input topic on, and keeps its status up to date."""

    def __init__(self, probe: Probe, topic: InputTopic, status: ModeStatus) -> None:
        self._probe = probe
        self._topic = topic
        self._status = status
        self.start = topic.end_offsets()
        self._reached = dict(self.start)
        self._arrived = time.monotonic(), self.start
        self._earlier = (0, 0)
        probe.reset()

    @property
    def has_output(self) -> bool:
        """Whether a flagged payment has come out since the last reset."""
        return self._probe.snapshot().flagged > 0

    def reset(self) -> None:
        """Begins latencies and their distribution again; the status goes on counting records."""
        snapshot = self._probe.snapshot()
        self._earlier = self._earlier[0] + snapshot.flagged, self._earlier[1] + snapshot.rejected
        self._probe.reset()

    def output_lag(self, end: Mapping[int, int]) -> int:
        """How many records lie between the newest one that has come out and the offsets `end`."""
        for partition, offset in self._probe.snapshot().source_offsets.items():
            self._reached[partition] = max(self._reached.get(partition, 0), offset + 1)
        return records_between(self._reached, end)

    def refresh(self) -> int:
        """Brings the status up to date; returns the output lag in records."""
        status, snapshot = self._status, self._probe.snapshot()
        now, end = time.monotonic(), self._topic.end_offsets()
        since, arrived = self._arrived
        if now - since >= _RATE_OVER_S:
            status.rate = records_between(arrived, end) / (now - since)
            self._arrived = now, end
        status.lag = self.output_lag(end)
        status.p50_ms, status.p99_ms = snapshot.p50_ms, snapshot.p99_ms
        status.flagged = self._earlier[0] + snapshot.flagged
        status.rejected = self._earlier[1] + snapshot.rejected
        status.distribution = self._probe.distribution()
        return status.lag
