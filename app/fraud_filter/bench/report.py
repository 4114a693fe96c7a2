"""The bench's report: `bench-report.json` with every figure, and what is drawn from it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from fraud_filter.bench.plan import BenchPlan
from fraud_filter.bench.result import StartResult
from fraud_filter.bench.summary import ratios, summarise_rounds, summarise_starts
from fraud_filter.errors import FraudFilterError

JSON_NAME = "bench-report.json"


@dataclass(frozen=True)
class BenchReport:
    """Everything that the report tells: what was planned, what came out, and on what it ran."""

    plan: BenchPlan
    starts: Sequence[StartResult]
    versions: Mapping[str, str]
    machine: Mapping[str, str | int | float]
    settings: Mapping[str, str | int | float]
    started_at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    took_s: float = 0

    @property
    def ok(self) -> bool:
        """Whether every planned start ran to its end with clean audits."""
        return len(self.starts) == len(self.plan.contenders) * self.plan.rounds and not self.problems

    @property
    def problems(self) -> list[str]:
        """What went wrong, a sentence each; empty when nothing did."""
        return [
            f"round {start.round}, {start.contender}: {start.error or 'the audit found lost or unexpected payments'}"
            for start in self.starts
            if not start.ok
        ]


def report_data(report: BenchReport) -> dict[str, Any]:
    """The report as plain data. Units end the names; null is not measured, never zero."""
    return {
        "ok": report.ok,
        "started_at": report.started_at.isoformat(timespec="seconds"),
        "took_s": round(report.took_s, 1),
        "results": summarise_rounds(report.starts),
        "ratios": ratios(report.starts, min(report.plan.rates)),
        "starts": summarise_starts(report.starts),
        "versions": dict(report.versions),
        "machine": dict(report.machine),
        "settings": dict(report.settings),
        "rounds": [_start_data(start) for start in report.starts],
    }


def _start_data(start: StartResult) -> dict[str, Any]:
    data = asdict(start)
    for rate, result in zip(data["rates"], start.rates, strict=True):
        rate["cpu_s_per_1000"] = result.cpu_s_per_1000
    return data


def write_report(report: BenchReport) -> list[Path]:
    """Writes the files into the plan's output directory; returns their paths.

    Raises:
        FraudFilterError: a file can't be written.
    """
    data = report.plan.output / JSON_NAME
    try:
        data.write_text(json.dumps(report_data(report), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise FraudFilterError(f"the report can't be written: {error}") from None
    return [data]
