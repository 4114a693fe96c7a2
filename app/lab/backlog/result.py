"""What working off the backlog came to in one mode, as JSON and as a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from fraud_filter.config import ModeName
from fraud_filter.text.tables import markdown, shown
from lab.harness.outcome import NOT_AUDITED, Audited, to_plain

_COLUMNS = ("mode", "backlog", "first decision, s", "caught up, s", "records/s", "peak MiB", "lost", "duplicated")


@dataclass(frozen=True)
class CatchUp:
    """One mode on the backlog.

    `records`: what lay there at the start of the program, while more kept coming. `start_s`: from the start of the
    program to its first decision; `seconds`: from there until all of the backlog was decided. `peak_bytes`: most
    memory (resident set) of Python and Java together. `error` says why it did not get there.
    """

    mode: ModeName
    records: int
    start_s: float | None = None
    seconds: float | None = None
    peak_bytes: int = 0
    audit: Audited = NOT_AUDITED
    error: str = ""

    @property
    def ok(self) -> bool:
        """All was decided, nothing lost and nothing unexpected."""
        return not self.error and self.audit.ok

    @property
    def rate(self) -> float | None:
        """Records decided per second."""
        return self.records / self.seconds if self.seconds else None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**to_plain(self), "records_per_second": self.rate and round(self.rate)}


def write_backlog(file: Path, results: Sequence[CatchUp], settings: Mapping[str, Any]) -> None:
    """Writes the results and the settings that they were had with."""
    document = {"settings": dict(settings), "results": [result.to_dict() for result in results]}
    file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def result_table(results: Sequence[CatchUp]) -> Table:
    """A line a mode."""
    table = Table(*_COLUMNS, "unexpected", "", title="Working off a backlog")
    for one in results:
        told = Text(one.error)  # with brackets, which are marks to rich otherwise
        table.add_row(one.mode, *_figures(one), shown(one.audit.unexpected), told, style="" if one.ok else "bold red")
    return table


def markdown_table(results: Sequence[CatchUp]) -> str:
    """The same for the documentation."""
    return markdown(_COLUMNS, ([f"`{one.mode}`", *_figures(one)] for one in results))


def _figures(one: CatchUp) -> list[str]:
    speed = (one.start_s, one.seconds, one.rate and round(one.rate), one.peak_bytes >> 20)
    figures = (one.records, *speed, one.audit.lost, one.audit.duplicated)
    return [shown(figure) for figure in figures]
