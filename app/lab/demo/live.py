"""What the user sees on a terminal while the demo runs: a table that fills.

A running mode is seen from outside: its output through the probe, and the input topic's end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fraud_filter.config import Settings
from fraud_filter.errors import FraudFilterError
from fraud_filter.probe.probe import Probe
from lab.bench.launch import Enter, Phase
from lab.bench.plan import Load
from lab.bench.result import StartResult
from lab.bench.table import rounded
from lab.harness.drain import InputTopic, open_input, records_between
from lab.harness.periodic import Periodic
from lab.harness.tables import format_number

State = Phase | Literal["waiting", "done", "failed"]
_AT_REST = ("waiting", "done", "failed")

#: Seconds between two looks at a running mode.
_EVERY_S = 1.0


@dataclass
class ModeStatus:
    """Where one mode stands. The runner writes, the view reads; None is not known (yet).

    The state takes `total_s` seconds, 0 where that is not known; `rate` is payments per second on the input; `lag` is
    the output lag: payments after the newest one that has come out. Latencies are those of the last second, in whole
    milliseconds, and at the end those of the result.
    """

    mode: str
    state: State = "waiting"
    began: float = 0
    total_s: float = 0
    rate: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    lag: int | None = None
    flagged: int | None = None
    rejected: int | None = None

    def enter(self, state: State, total_s: float = 0) -> None:
        """A new state begins."""
        self.state, self.began, self.total_s = state, time.monotonic(), total_s

    @property
    def words(self) -> str:
        """The state, and for how long it lasts by now."""
        if self.state in _AT_REST:
            return self.state
        elapsed_s = time.monotonic() - self.began
        return f"{self.state} {elapsed_s:.0f}{f'/{self.total_s:.0f}' if self.total_s else ''} s"

    def finish(self, start: StartResult) -> None:
        """The mode has ended: what was seen gives way to what was measured."""
        for one in start.rates:
            self.rate = one.kept_rate
            self.p50_ms, self.p99_ms = one.due["p50_ms"], one.due["p99_ms"]
            self.flagged, self.rejected = one.flagged, one.rejected
        self.enter("failed" if start.problem else "done")


def live_table(load: Load, statuses: Sequence[ModeStatus], began: float) -> RenderableType:
    """A table of all modes as it stands now; the demo `began` then, on the monotonic clock."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    table.add_column("\nmode", no_wrap=True)
    table.add_column("\nstate", no_wrap=True, min_width=20)
    for heading in ("rate\n/s", "p50\nms", "p99\nms", "output\nlag", "\nflagged", "\nrejected"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=5)
    for status in statuses:
        style = {"done": "", "failed": "bold red", "waiting": "dim"}.get(status.state, "bold")
        table.add_row(
            Text(status.mode, style=style),
            Text(status.words, style=style),
            *(rounded(figure) for figure in (status.rate, status.p50_ms, status.p99_ms)),
            *map(format_number, (status.lag, status.flagged, status.rejected)),
        )
    minutes, seconds = divmod(int(time.monotonic() - began), 60)
    heading = (
        f"{load.rates[0]:g} payments/s over {load.partitions} partitions, {load.seconds:g} s a mode after "
        f"{load.settle_s:g} s of warm-up   {minutes}:{seconds:02d}"
    )
    return Group(Text(heading, style="dim"), table)


@contextmanager
def watched(status: ModeStatus, settings: Settings) -> Iterator[Enter]:
    """Keeps the status of a mode up to date while the mode runs on the topics of the settings."""
    with Probe(settings) as probe, open_input(settings) as topic, _Observer(probe, topic, status):
        yield status.enter


class _Observer(Periodic):
    """What it shows is for the eye; the results are read back from the topics afterwards."""

    def __init__(self, probe: Probe, topic: InputTopic, status: ModeStatus) -> None:
        super().__init__("observer", _EVERY_S)
        self._probe = probe
        self._topic = topic
        self._status = status
        self._arrived = time.monotonic(), topic.end_offsets()

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
            latest = self._probe.lap()
            if latest.p50_ms is not None:
                status.p50_ms, status.p99_ms = latest.p50_ms, latest.p99_ms
