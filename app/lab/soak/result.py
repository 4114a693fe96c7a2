"""What a soak came to, as JSON and as tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from fraud_filter.audit.result import AuditResult
from lab.faults.result import Outcome, result_table
from lab.harness.outcome import to_plain
from lab.soak.schedule import Due
from lab.soak.trend import Trend

_MIB = 1024 * 1024


@dataclass(frozen=True)
class Soak:
    """`faults`: what was due, when it was put in (seconds after the start), and its outcome."""

    seed: int
    minutes: float
    rate: float
    faults: list[tuple[Due, float, Outcome]]
    audit: AuditResult
    trends: list[Trend]

    @property
    def ok(self) -> bool:
        """Nothing lost or unexpected in all of it, every fault recovered from, nothing grows."""
        return self.audit.ok and all(outcome.ok for *_, outcome in self.faults) and not self.growing

    @property
    def growing(self) -> list[Trend]:
        """Figures that grow."""
        return [trend for trend in self.trends if trend.grows]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "ok": self.ok,
            "seed": self.seed,
            "minutes": self.minutes,
            "rate": self.rate,
            "faults": [{"due_s": due.at_s, "at_s": at_s, **to_plain(outcome)} for due, at_s, outcome in self.faults],
            "audit": self.audit.to_dict(),
            "trends": [asdict(trend) for trend in self.trends],
        }

    def write(self, file: Path) -> None:
        """Writes it as JSON."""
        file.write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8")

    def tables(self) -> Iterator[Table]:
        """Faults, and trends."""
        yield result_table([outcome for *_, outcome in self.faults])
        table = Table("process", "figure", "minutes", "first", "last", "trend", "allowed", title="Growth")
        for one in self.trends:
            shown = (_amount(value, one.unit) for value in (one.first, one.last, one.added, one.allowed))
            style = "bold red" if one.grows else ""
            table.add_row(one.role, one.figure, f"{one.seconds / 60:.0f}", *shown, style=style)
        yield table


def _amount(value: float, unit: str) -> str:
    return f"{value / _MIB:,.0f} MiB" if unit == "bytes" else f"{value:,.0f}"
