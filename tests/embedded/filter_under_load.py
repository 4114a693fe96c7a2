"""A filter under load while faults are put in: waits for what it decides and commits, and audits it at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faults import Decisions, Feed, events, metrics
from fraud_filter.audit.gaps import read_recorded
from fraud_filter.audit.result import AuditResult
from fraud_filter.audit.run import audit
from lab.harness.processes import Child, free_ports
from running import START_S, Stage, wait_until

_QUICK = {
    "restart_backoff_s": "0.2",
    "stop_timeout_s": "15",
    "continuous_interval": "1 second",
}
#: What `deploy` gives a filter itself.
_OWN = ("FRAUD_MODE", "FRAUD_METRICS_PORT", "FRAUD_PROBE_PORT", "FRAUD_RULES")


class Run:
    """A filter under load."""

    def __init__(self, stage: Stage, mode: str, spark_master: str = "local[4]", **settings: str) -> None:
        (port,) = free_ports(1)
        self.stage, self.mode, self.port = stage, mode, port
        self.program = stage.run(mode=mode, metrics_port=str(self.port), **{**_QUICK, **settings})
        self._audited = {"rules": Path(settings["rules"])} if "rules" in settings else {}
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

    def await_fresh(self, after: str, timeout_s: float = 240) -> float:
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

    def drain(self, program: Child, timeout_s: float = 40) -> None:
        """Stops the feed and, once all is decided, `program`, which decides now."""
        self.feed.stop()
        ends = {number: end - 2 for number, end in self.decisions.ends().items()}  # every second one is flagged
        wait_until(lambda: self.decisions.fresh(ends), "all decided", program)
        began = time.monotonic()
        assert program.stop(timeout_s) == 0, program.tail()
        print(f"measured stop in {self.mode} mode: {time.monotonic() - began:.1f} s")  # noqa: T201

    def end(self) -> AuditResult:
        """Stops feed and filter; nothing may be lost."""
        self.drain(self.program, 30)
        result = audit(self.stage.settings().model_copy(update=self._audited))
        print(f"measured audit in {self.mode} mode: {result.expected} expected, {result.duplicated} duplicated")  # noqa: T201
        assert result.expected, result
        assert (result.lost, result.unexpected) == (0, 0), result
        return result


def require_features(result: AuditResult) -> None:
    """Each decision that was written was compared, and has the features and the score that the audit computes."""
    assert result.features, result
    assert (result.features.differing, result.features.untold) == (0, 0), result
    assert result.features.decisions == result.written > 0, result


def write_rules(file: Path, name: str, when: str) -> Path:
    """A file with one rule."""
    file.write_text(f"rules:\n  - name: {name}\n    when: {when}\n")
    return file


FEATURES = """\
features:
  - {name: payments_2s, per: card_id, over: 2 seconds, value: count}
  - {name: spent_10s, per: card_id, over: 10 seconds, value: sum(amount)}
  - {name: idle, per: card_id, over: 10 seconds, value: seconds_since_last}
"""


def rules_with_features(stage: Stage, name: str = "large", more: str = "payments_2s > 0", head: str = FEATURES) -> Path:
    """A file with features, and a rule that matches every second payment of the feed where `more` does."""
    file = stage.directory / f"{name}.yml"
    file.write_text(f"{head}rules:\n  - {{name: {name}, when: amount > 5000 AND {more}}}\n")
    return file


def deploy(run: Run, file: Path, *options: str) -> tuple[Child, int]:
    """`fraud-filter handover --rules`, not yet started, and the port of its metrics."""
    (port,) = free_ports(1)
    env = {name: value for name, value in run.program._env.items() if name not in _OWN}
    env |= {"FRAUD_MODE": run.mode, "FRAUD_METRICS_PORT": str(port), "FRAUD_STANDBY_WARM_UP_S": "3"}
    argv = [sys.executable, "-m", "fraud_filter", "handover", "--rules", str(file), *options]
    return Child("the new filter", argv, log=run.stage.directory / f"deploy-{port}.log", env=env), port


def audit_change(stage: Stage, rules: Path, unexpected: int = 0, versions: int = 2) -> AuditResult:
    """The audit of a run in which other rules followed the first ones; nothing may be lost."""
    settings = stage.settings().model_copy(update={"rules": rules, "checkpoint": str(stage.directory / "checkpoint")})
    result = audit(settings, recorded=read_recorded(settings))
    assert (result.lost, result.unexpected, result.unknown) == (0, unexpected, 0), result
    assert len(result.versions) == versions
    return result


@contextmanager
def standby_of(run: Run, **settings: str) -> Iterator[tuple[Child, int]]:
    """A standby that is ready, and the port of its metrics."""
    (port,) = free_ports(1)
    program = run.stage.run(mode=run.mode, metrics_port=str(port), **{"standby_warm_up_s": "3", **settings})
    program._argv.append("--standby")
    program._env["SPARK_MASTER"] = run.program._env["SPARK_MASTER"]
    with program:
        wait_until(lambda: bool(events(program, "standby_ready")), "the standby is ready", program, START_S)
        yield program, port


def settings_of(run: Run) -> dict[str, str]:
    """What the program of `run` got, but for what is a process' own."""
    prefix, own = "FRAUD_", ("MODE", "METRICS_PORT", "PROBE_PORT", "CHECKPOINT")
    given = {name.removeprefix(prefix): value for name, value in run.program._env.items() if name.startswith(prefix)}
    return {name.lower(): value for name, value in given.items() if name not in own and not name.endswith("_TOPIC")}
