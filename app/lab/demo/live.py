"""What the user sees while the demo runs: a table that fills, or plain lines where no terminal is.

A running mode is seen from outside: its output through the probe, and the input topic's end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Literal

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
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
    milliseconds, and at the end those of the result. `detail` explains the state.
    """

    mode: str
    state: State = "waiting"
    detail: str = ""
    began: float = 0
    total_s: float = 0
    rate: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    lag: int | None = None
    flagged: int | None = None
    rejected: int | None = None

    def enter(self, state: State, total_s: float = 0, detail: str = "") -> None:
        """A new state begins."""
        self.state, self.detail, self.began, self.total_s = state, detail, time.monotonic(), total_s

    @property
    def words(self) -> str:
        """The state, and for how long it lasts by now."""
        if self.state in _AT_REST:
            return self.state
        elapsed_s = time.monotonic() - self.began
        return f"{self.state} {elapsed_s:.0f}{f'/{self.total_s:.0f}' if self.total_s else ''} s"

    def finish(self, start: StartResult) -> None:
        """The mode has ended: what was seen gives way to what was measured."""
        summary = "nothing was measured"
        for one in start.rates:
            self.rate = one.kept_rate
            self.p50_ms, self.p99_ms = one.due["p50_ms"], one.due["p99_ms"]
            self.flagged, self.rejected = one.flagged, one.rejected
            latency = f"p50 {rounded(self.p50_ms)} ms, p99 {rounded(self.p99_ms)} ms"
            summary = f"{latency}, {format_number(self.flagged)} flagged, {one.audit}"
        self.enter("failed" if start.problem else "done", detail=start.problem or summary)


#: Told that a mode has entered a new state.
Announce = Callable[[ModeStatus], None]


@contextmanager
def open_view(console: Console, load: Load, statuses: Sequence[ModeStatus]) -> Iterator[Announce]:
    """The live table on a terminal, drawn four times a second; else lines (a log file, continuous integration)."""
    if not console.is_terminal:
        yield partial(_print_line, console)
        return
    table = partial(live_table, load, statuses, time.monotonic())
    with Live(console=console, get_renderable=table, refresh_per_second=4) as live:
        yield lambda _: live.refresh()  # the table shows all states anyway


def _print_line(console: Console, status: ModeStatus) -> None:
    """One plain line for a change of state."""
    length = f" {status.total_s:g} s" if status.total_s else ""
    detail = f": {status.detail}" if status.detail else ""
    line = f"{time.strftime('%H:%M:%S')} {status.mode}: {status.state}{length}{detail}"
    console.print(line, markup=False, highlight=False, soft_wrap=True)


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
def watched(status: ModeStatus, announce: Announce, settings: Settings) -> Iterator[Enter]:
    """Keeps the status of a mode up to date and shows it, while the mode runs on the topics of the settings.

    Raises:
        UsageError: no broker answers within `kafka_timeout_s` seconds, or a topic is missing.
    """
    with Probe(settings) as probe, open_input(settings) as topic, _Observer(probe, topic, status):

        def enter(phase: Phase, seconds: float) -> None:
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
