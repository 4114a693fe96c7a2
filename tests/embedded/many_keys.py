"""What the state of so many keys takes, its latency and its restart; run by hand, ten minutes each.

    python tests/embedded/many_keys.py 10000 1000000

Real-time mode with the bench's three windows of a card, two partitions. First each card pays, 60,000 times in all at
least, so that Java has compiled; then, within a batch, cards drawn from all pay at 100/s for 270 s, which is measured;
then all processes are killed and started again.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from fraud_filter.config import load
from fraud_filter.kafka.input_topic import InputTopic, open_input
from fraud_filter.probe.probe import Probe
from lab.bench.contenders import VELOCITY_RULES
from lab.bench.rejected_tail import follow_rejected
from lab.harness.drain import drain
from lab.harness.embedded_stack import EmbeddedStack, embedded_stack
from lab.harness.processes import Child, free_ports
from lab.harness.waiting import wait_until
from lab.transitions.filter_run import FilterRun
from metrics_page import Page
from running import payment

_BATCH = "5 minutes"  # the default
_RATE, _MEASURED_S = 100, 270
_PATIENCE_S = 900
_WARM = 60_000
_MIB = 2**20


class Measured:
    """A filter with the state of `keys` cards."""

    def __init__(self, stack: EmbeddedStack, keys: int) -> None:
        self._stack, self._keys = stack, keys
        self._page = Page(*free_ports(1))
        self._checkpoint = stack.workspace.path / f"checkpoint-{keys}"
        self._producer = Producer(
            {"bootstrap.servers": stack.settings.kafka_bootstrap_servers, "queue.buffering.max.messages": 2_000_000}
        )
        self._began = 0.0

    def run(self, topic: InputTopic, probe: Probe) -> dict[str, float]:
        """Fills, measures, kills, starts again."""
        start = topic.end_offsets()
        with follow_rejected(self._stack.settings) as tail:
            first = self._filter(start, "first")
            with first.child as program:
                self._send(start, 1, probe, program)  # it runs
                began = time.monotonic()
                for number in range(max(self._keys, _WARM)):
                    self._pay(number % self._keys, 20)
                self._producer.flush()
                drain(topic, tail.has_passed, _PATIENCE_S, "the cards are not known", [program])
                filled_s = time.monotonic() - began
                self._await_batch_end(program)
                probe.reset()
                self._send(topic.end_offsets(), _MEASURED_S, probe, program)
                seen = probe.snapshot()
                told = {what: self._told(what) for what in ("keys", "memory_bytes", "disk_bytes", "commit_seconds")}
                self._await_batch_end(program)
                first.stop("kill")
            again = self._filter(start, "again")
            began = time.monotonic()
            with again.child as program:
                self._send(topic.end_offsets(), 1, probe, program)
                restart_s = time.monotonic() - began
        checkpoint = sum(file.stat().st_size for file in self._checkpoint.rglob("*") if file.is_file())
        return {
            "rows": told["keys"],
            "memory MiB": told["memory_bytes"] / _MIB,
            "disk MiB": told["disk_bytes"] / _MIB,
            "checkpoint MiB": checkpoint / _MIB,
            "commit s": told["commit_seconds"],
            "p50 ms": seen.p50_ms or 0,
            "p99 ms": seen.p99_ms or 0,
            "max ms": seen.max_ms or 0,
            "restart s": restart_s,
            "filled s": filled_s,
        }

    def _filter(self, start: dict[int, int], name: str) -> FilterRun:
        changes = {"rules": VELOCITY_RULES, "metrics_port": self._page.port, "real_time_duration": _BATCH}
        stack = self._stack.with_settings(changes)
        return FilterRun(
            stack, "real-time", start, checkpoint=str(self._checkpoint), log=f"{self._keys}-{name}.log", changes=changes
        )

    def _told(self, what: str) -> float:
        return self._page.values(f"fraud_filter_velocity_{what}").get("", 0)

    def _await_batch_end(self, program: Child) -> None:
        def commits() -> float:
            return self._page.values("fraud_filter_commits_total").get("", 0)

        before = commits()
        wait_until(lambda: commits() > before, _PATIENCE_S, "no batch ended", [program])

    def _pay(self, key: int, amount: float) -> None:
        while True:
            try:
                card = f"card-{key:07}"
                self._producer.produce(self._stack.settings.input_topic, payment("p", amount, card), card.encode())
                return
            except BufferError:
                self._producer.poll(0.1)

    def _send(self, since: dict[int, int], seconds: float, probe: Probe, program: Child) -> None:
        """Payments of cards drawn from all, all flagged, for so long and until each partition has a decision."""
        draw, due = random.Random(1), time.monotonic()
        end = due + seconds
        while time.monotonic() < end or not probe.has_passed(since):
            program.raise_if_dead()
            if due > end + _PATIENCE_S:
                raise TimeoutError("nothing was decided")
            self._pay(draw.randrange(self._keys), 6000)
            self._producer.poll(0)
            due += 0.997 / _RATE
            time.sleep(max(0.0, due - time.monotonic()))
        self._producer.flush()


def main() -> None:
    """Measures each number of keys that is given."""
    settings = load({}, Path("/dev/null"))
    for keys in map(int, sys.argv[1:]):
        with embedded_stack("keys", settings, _say, slots=8, partitions=2) as stack:
            with Probe(stack.settings) as probe, open_input(stack.settings) as topic:
                found: dict[str, Any] = Measured(stack, keys).run(topic, probe)
            _say(f"{keys:,} keys: " + ", ".join(f"{name} {figure:.4g}" for name, figure in found.items()))


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
