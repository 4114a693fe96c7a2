"""Memory, threads and open files of the stack's long-running processes, sampled from within their containers."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from docker.errors import DockerException

from fraud_filter.compose.prometheus import Prometheus
from fraud_filter.compose.stack import FILTER
from fraud_filter.errors import FraudFilterError
from lab.harness.compose_stack import BROKER, MASTER, WORKER, ComposeStack
from lab.harness.periodic import Periodic

_log = logging.getLogger(__name__)
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
                _log.debug("event=no_sample service=%s reason=%s", service, error)
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
