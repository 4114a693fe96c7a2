"""Memory, threads and open files of the stack's long-running processes, sampled in their containers: do they grow?

The life of a process is cut into windows, of each the median is taken (of a heap the least: what a collection
leaves). The slope is that of Theil and Sen, the median of the slopes between all pairs of windows, which a few windows
out of line do not move (Sen 1968, J. Amer. Statist. Assoc. 63). A figure grows when the slope adds more than a
tolerance over the time that was seen, and when nearly all pairs of windows rise: what a filling cache adds once is no
growth.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import median

from docker.errors import DockerException

from fraud_filter.compose.prometheus import Prometheus
from fraud_filter.compose.stack import FILTER
from fraud_filter.errors import FraudFilterError
from fraud_filter.text.logs import get_logger
from lab.harness.compose_stack import BROKER, MASTER, WORKER, ComposeStack
from lab.harness.periodic import Periodic

_log = get_logger(__name__)
_PERIOD_S = 10.0
_ANSWER_S = 3.0
#: A line a process: id, start in clock ticks since boot, resident KiB, threads, open files, command line. Files of
#: /proc go with their process: what is incomplete is left out by `parse`.
_LOOK = r"""
for process in /proc/[0-9]*; do
    cd "$process" 2>/dev/null || continue
    echo "${process#/proc/} $(sed 's/.*) //' stat | cut -d' ' -f20)" \
        $(awk '/^(VmRSS|Threads):/ {print $2}' status) $(ls fd | wc -l) "$(tr '\0' ' ' <cmdline)"
done 2>/dev/null
true
"""
#: What a process is, by a word of its command line.
_ROLES = {
    "deploy.SparkSubmit": "driver",
    "/fraud-filter run": "filter",
    "CoarseGrainedExecutorBackend": "executor",
    "deploy.worker.Worker": "worker",
    "deploy.master.Master": "master",
    "kafka.Kafka ": "broker",
}
#: Bytes of heap that the last collection of each pool has left. Nobody tells those of executors.
_HEAPS = {
    role: f'sum(jvm_memory_pool_collection_used_bytes{{job="{job}"}})'
    for role, job in {
        "driver": "spark-driver",
        "worker": "spark-worker",
        "master": "spark-master",
        "broker": "kafka",
    }.items()
}


@dataclass(frozen=True)
class Life:
    """One process: what it is, and which of its kind. Restarts begin new lives: figures are compared within one."""

    role: str
    pid: int
    started: int


@dataclass(frozen=True)
class Sample:
    """`at_s` on the monotonic clock; memory in bytes. `heap` is None where nobody tells it."""

    at_s: float
    memory: int
    threads: int
    files: int
    heap: int | None = None


class Sampler(Periodic):
    """Takes a sample every 10 seconds."""

    def __init__(self, stage: ComposeStack) -> None:
        super().__init__("samples", _PERIOD_S)
        self._stage = stage
        self._prometheus = Prometheus(f"http://127.0.0.1:{stage.stack.value('PROMETHEUS_PORT')}", _ANSWER_S)
        self.lives: dict[Life, list[Sample]] = defaultdict(list)

    def look(self) -> None:
        """Takes a sample of each process in each container that answers."""
        heaps = {role: self._ask(query) for role, query in _HEAPS.items()}
        for service in (FILTER, WORKER, MASTER, BROKER):
            try:
                text = self._stage.execute(service, _LOOK)
            except (FraudFilterError, DockerException) as error:  # it is away, as faults make it
                _log.debug("no_sample", service=service, reason=error)
                continue
            for life, sample in parse(text, time.monotonic(), heaps):
                self.lives[life].append(sample)

    def _ask(self, query: str) -> int | None:
        try:
            found = self._prometheus.instant(query)
        except FraudFilterError:
            return None
        return int(found[0].value) if found and found[0].value is not None else None


def parse(text: str, at_s: float, heaps: Mapping[str, int | None]) -> Iterable[tuple[Life, Sample]]:
    """The processes that have a role, of what the script has printed."""
    for line in text.splitlines():
        words = line.split(maxsplit=5)
        role = next((role for sign, role in _ROLES.items() if sign in words[-1] + " "), None) if words else None
        if role is None or len(words) < 6 or not all(word.isdecimal() for word in words[:5]):
            continue
        pid, started, memory_kib, threads, files = map(int, words[:5])
        yield Life(role, pid, started), Sample(at_s, memory_kib * 1024, threads, files, heaps.get(role))


#: Not looked at: caches fill, code is compiled, heaps take their size.
WARM_UP_S = 120.0
#: A window has samples enough for a median; fewer windows say nothing.
_WINDOW_S = 60.0
_LEAST_WINDOWS, _MOST_WINDOWS = 5, 20
_RISING = 0.8


@dataclass(frozen=True)
class Figure:
    """One that is looked at. It may add `share` of its first value and `extra` (its own unit) over the time seen."""

    name: str
    unit: str
    read: Callable[[Sample], float | None]
    share: float
    extra: float
    floor: bool = False


_MIB = 1024 * 1024
FIGURES = (
    Figure("memory", "bytes", lambda sample: sample.memory, 0.15, 48 * _MIB),
    Figure("heap after collections", "bytes", lambda sample: sample.heap, 0.15, 24 * _MIB, floor=True),
    Figure("threads", "threads", lambda sample: sample.threads, 0.1, 10),
    Figure("files", "open files", lambda sample: sample.files, 0.1, 20),
)


@dataclass(frozen=True)
class Trend:
    """A figure of one process: its first and last window's value, what the slope adds over `seconds`, the verdict."""

    role: str
    figure: str
    unit: str
    seconds: float
    windows: int
    first: float
    last: float
    added: float
    allowed: float
    rising: float
    grows: bool


def find_trends(lives: Mapping[Life, Sequence[Sample]], figures: Iterable[Figure] = FIGURES) -> list[Trend]:
    """Trends of all processes that lived long enough to have one."""
    trends = []
    for life, samples in lives.items():
        for figure in figures:
            points = [(sample.at_s, value) for sample in samples if (value := figure.read(sample)) is not None]
            trend = _trend(life.role, figure, points)
            if trend:
                trends.append(trend)
    return trends


def _trend(role: str, figure: Figure, points: Sequence[tuple[float, float]]) -> Trend | None:
    windows = cut(points, min if figure.floor else median)
    if len(windows) < _LEAST_WINDOWS:
        return None
    pairs = list(combinations(windows, 2))
    slope = median((later[1] - earlier[1]) / (later[0] - earlier[0]) for earlier, later in pairs)
    rising = sum(later[1] > earlier[1] for earlier, later in pairs) / len(pairs)
    seconds = windows[-1][0] - windows[0][0]
    first, last = windows[0][1], windows[-1][1]
    added, allowed = slope * seconds, figure.share * first + figure.extra
    return Trend(
        role=role,
        figure=figure.name,
        unit=figure.unit,
        seconds=round(seconds),
        windows=len(windows),
        first=first,
        last=last,
        added=round(added, 1),
        allowed=round(allowed, 1),
        rising=round(rising, 2),
        grows=added > allowed and rising >= _RISING,
    )


def cut(points: Sequence[tuple[float, float]], choose: Callable[[list[float]], float]) -> list[tuple[float, float]]:
    """Windows of equal length after the warm-up, as (middle, chosen value); empty ones are left out."""
    if not points:
        return []
    start, end = points[0][0] + WARM_UP_S, points[-1][0]
    count = min(_MOST_WINDOWS, int((end - start) // _WINDOW_S))
    if count < 1:
        return []
    edges = [start + (end - start) * number / count for number in range(count + 1)]
    windows = []
    for low, high in pairwise(edges):
        values = [value for at_s, value in points if low <= at_s <= high]
        if values:
            windows.append(((low + high) / 2, choose(values)))
    return windows
