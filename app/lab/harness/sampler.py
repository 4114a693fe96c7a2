"""Processor time and memory of programs while they run, by psutil: each with all that it has started.

And processor time that the machine did not get.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress

import psutil

from lab.harness.periodic import Periodic
from lab.harness.processes import Child, family_of

_EVERY_S = 0.5
_MIB = 2**20


class Sampler(Periodic):
    """Looks at programs twice a second; `with Sampler({"filter": child}) as sampler`.

    What a program has started counts, and what has ended counts with the parent that has waited for it.
    """

    def __init__(self, programs: Mapping[str, Child]) -> None:
        super().__init__("sampler", _EVERY_S)
        self._programs = dict(programs)
        #: What was seen of each, as pairs of a time and a figure.
        self._cpu_s, self._rss_mib = (defaultdict[str, list[tuple[float, float]]](list) for _ in range(2))
        self._busy_s: list[tuple[float, float]] = []
        self._stolen_s: list[tuple[float, float]] = []

    def cpu_between(self, name: str, start_s: float, end_s: float) -> float | None:
        """Processor seconds that a program took between two times (seconds since 1970), interpolated; None: unknown."""
        return _growth(self._cpu_s[name], start_s, end_s)

    def stolen_between(self, start_s: float, end_s: float) -> float | None:
        """Processor time that a hypervisor withheld (`steal`, proc_stat(5)) between two times (seconds since 1970),
        divided by the sum of that and the time used here; None: unknown."""
        stolen, busy = (_growth(seen, start_s, end_s) for seen in (self._stolen_s, self._busy_s))
        return stolen / (stolen + busy) if stolen is not None and busy is not None and stolen + busy else None

    def peak_rss_mib(self, name: str) -> float | None:
        """The most resident memory of a program in MiB; pages that its processes share count for each of them."""
        return max((mib for _, mib in self._rss_mib[name]), default=None)

    def look(self) -> None:
        """Takes a sample of each program that runs, and of the machine."""
        times = psutil.cpu_times()
        if hasattr(times, "steal"):
            self._busy_s.append((time.time(), times.user + times.nice + times.system + times.irq + times.softirq))
            self._stolen_s.append((time.time(), times.steal))
        for name, child in self._programs.items():
            if child.is_alive:
                cpu_s, rss_mib = _usage(child)
                seen = self._cpu_s[name]
                if not seen or cpu_s >= seen[-1][1]:  # not while it is ending
                    seen.append((time.time(), cpu_s))
                    self._rss_mib[name].append((time.time(), rss_mib))


def _growth(seen: Sequence[tuple[float, float]], start_s: float, end_s: float) -> float | None:
    """How much a total grew between two times, interpolated; None for less than two looks."""
    import numpy as np

    if len(seen) < 2:
        return None
    times, totals = np.array(seen).T
    low, high = np.interp((start_s, end_s), times, totals)
    return float(high - low)


def _usage(child: Child) -> tuple[float, float]:
    """Processor seconds and resident MiB of a program and its descendants."""
    cpu_s, rss, family = 0.0, 0, list[psutil.Process]()
    with suppress(psutil.Error):
        family = family_of(child)
    for process in family:
        with suppress(psutil.Error), process.oneshot():
            times = process.cpu_times()
            cpu_s += times.user + times.system + times.children_user + times.children_system
            rss += process.memory_info().rss
    return cpu_s, rss / _MIB
