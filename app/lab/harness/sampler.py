"""Processor time and memory of programs while they run, by psutil: each with all that it has started.

And processor time that the machine did not get.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from lab.harness.periodic import Periodic
from lab.harness.processes import Child

_EVERY_S = 0.5
_MIB = 2**20


@dataclass
class _Series:
    times: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    rss_mib: list[float] = field(default_factory=list)


@dataclass
class _Machine:
    times: list[float] = field(default_factory=list)
    busy_s: list[float] = field(default_factory=list)
    stolen_s: list[float] = field(default_factory=list)


class Sampler(Periodic):
    """Looks at programs twice a second; `with Sampler({"filter": child}) as sampler`.

    What a program has started counts, and what has ended counts with the parent that has waited for it.
    """

    def __init__(self, programs: Mapping[str, Child]) -> None:
        super().__init__("sampler", _EVERY_S)
        self._programs = dict(programs)
        self._series: dict[str, _Series] = defaultdict(_Series)
        self._machine = _Machine()

    def cpu_between(self, name: str, start_s: float, end_s: float) -> float | None:
        """Processor seconds that a program took between two times (seconds since 1970), interpolated; None: unknown."""
        series = self._series[name]
        return None if len(series.times) < 2 else _growth(series.times, series.cpu_s, start_s, end_s)

    def stolen_between(self, start_s: float, end_s: float) -> float | None:
        """Processor time that a hypervisor gave to other guests between two times (seconds since 1970).

        Returns:
            processor time that a hypervisor withheld (`steal`, proc_stat(5)), divided by the sum of that and the time
            used here; None: unknown.
        """
        seen = self._machine
        if len(seen.times) < 2:
            return None
        stolen, busy = (_growth(seen.times, total, start_s, end_s) for total in (seen.stolen_s, seen.busy_s))
        return stolen / (stolen + busy) if stolen + busy else None

    def peak_rss_mib(self, name: str) -> float | None:
        """The most resident memory of a program in MiB; pages that its processes share count for each of them."""
        return max(self._series[name].rss_mib, default=None)

    def look(self) -> None:
        """Takes a sample of each program that runs, and of the machine."""
        now = psutil.cpu_times()
        if hasattr(now, "steal"):
            self._machine.times.append(time.time())
            self._machine.busy_s.append(now.user + now.nice + now.system + now.irq + now.softirq)
            self._machine.stolen_s.append(now.steal)
        for name, child in self._programs.items():
            if child.pid and child.is_alive:
                cpu_s, rss_mib = _usage(child.pid)
                series = self._series[name]
                if not series.cpu_s or cpu_s >= series.cpu_s[-1]:  # not while it is ending
                    series.times.append(time.time())
                    series.cpu_s.append(cpu_s)
                    series.rss_mib.append(rss_mib)


def _growth(times: Sequence[float], totals: Sequence[float], start_s: float, end_s: float) -> float:
    """How much a total that was seen at `times` grew between two others, interpolated."""
    import numpy as np

    low, high = np.interp((start_s, end_s), times, totals)
    return float(high - low)


def _usage(pid: int) -> tuple[float, float]:
    """Processor seconds and resident MiB of a process and its descendants."""
    cpu_s, rss = 0.0, 0
    for process in _family(pid):
        with suppress(psutil.Error), process.oneshot():
            times = process.cpu_times()
            cpu_s += times.user + times.system + times.children_user + times.children_system
            rss += process.memory_info().rss
    return cpu_s, rss / _MIB


def _family(pid: int) -> list[psutil.Process]:
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []
