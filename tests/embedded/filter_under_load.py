"""A filter under load while faults are put in: waits for what it decides and commits, and audits it at the end."""

from __future__ import annotations

import time

from faults import Decisions, Feed, metrics
from fraud_filter.audit.run import audit
from running import Stage, free_ports, wait_until

_QUICK = {
    "restart_backoff_s": "0.2",
    "stall_timeout_s": "15",
    "stop_timeout_s": "15",
    "continuous_interval": "1 second",
}


class Run:
    """A filter under load."""

    def __init__(self, stage: Stage, mode: str, spark_master: str = "local[4]", **settings: str) -> None:
        (port,) = free_ports(1)
        self.stage, self.mode, self.port = stage, mode, port
        self.program = stage.run(mode=mode, metrics_port=str(self.port), **{**_QUICK, **settings})
        self.program._env["SPARK_MASTER"] = spark_master
        self.feed = Feed(stage)

    def __enter__(self) -> Run:
        self.feed.__enter__()
        self.program.start()
        self.decisions = Decisions(self.stage)
        return self

    def __exit__(self, *_: object) -> None:
        self.program.stop()
        self.feed.stop()
        self.decisions.close()

    def await_fresh(self, after: str, timeout_s: float = 90) -> float:
        """Waits until payments that arrive from now on are decided in each partition; returns the seconds."""
        began = time.monotonic()
        ends = self.decisions.ends()
        what = f"fresh decisions in {self.mode} mode after {after}"
        wait_until(lambda: self.decisions.fresh(ends), what, self.program, timeout_s)
        seconds = time.monotonic() - began
        print(f"measured {what}: {seconds:.1f} s")  # noqa: T201 - shown by pytest -s
        return seconds

    def await_commit(self) -> None:
        """Waits until more is committed: what went before no longer counts as a failure in a row."""
        before = self.committed()
        wait_until(lambda: self.committed() > before, f"a commit in {self.mode} mode", self.program)

    def committed(self) -> float:
        offsets = metrics(self.port).items()
        return sum(offset for name, offset in offsets if name.startswith("fraud_filter_committed_offset"))

    def restarts(self, reason: str) -> float:
        return metrics(self.port)[f"fraud_filter_restarts_total/{reason}"]

    def end(self) -> None:
        """Stops feed and filter; nothing may be lost."""
        self.feed.stop()
        ends = {number: end - 2 for number, end in self.decisions.ends().items()}  # every second one is flagged
        wait_until(lambda: self.decisions.fresh(ends), "all decided", self.program)
        began = time.monotonic()
        assert self.program.stop(30) == 0, self.program.tail()
        print(f"measured stop in {self.mode} mode: {time.monotonic() - began:.1f} s")  # noqa: T201
        result = audit(self.stage.settings())
        print(f"measured audit in {self.mode} mode: {result.expected} expected, {result.duplicated} duplicated")  # noqa: T201
        assert result.expected > 0, result
        assert (result.lost, result.unexpected) == (0, 0), result
