"""What an interruption came to, as JSON and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

from rich.table import Table
from rich.text import Text

from fraud_filter.text.outputs import write_items
from fraud_filter.text.tables import markdown, shown
from lab.harness.outcome import NOT_AUDITED, Audited, to_plain

What = Literal["kill", "hang", "freeze", "handover", "rules", "switch"]
#: Those that are planned: a warm filter asks the active one to end.
PLANNED: tuple[What, ...] = ("handover", "rules", "switch")

#: What is told apart in a file of results.
FIELDS = ("what", "mode", "standby", "stack", "cards", "in_turn")
_COLUMNS = (
    *FIELDS[:-1], "tries", "median, s", "worst, s", "every partition, worst, s", "lost", "duplicated, worst",
    "unexpected",
)  # fmt: skip


@dataclass(frozen=True)
class Interruption:
    """One interruption under load.

    `seconds`: from it to the first decision about a payment that was appended after it, None and a reason in `error`
    when none came; `every_partition_s`: to such a decision in each partition. Of a planned change (`PLANNED`), and on a
    stack, `seconds` is the longest time between two decisions, from before it on. `audit`: of this one alone.
    `mode`: the filter's; in the bench also `flink`. `stack`: on the Compose stack, else embedded. `cards`: whose state
    the filter had before; 0 without features. `in_turn`: by the former filter, which had waited, and no new one.
    """

    what: What
    mode: str
    standby: bool
    seconds: float | None = None
    every_partition_s: float | None = None
    audit: Audited = NOT_AUDITED
    error: str = ""
    stack: bool = False
    cards: int = 0
    in_turn: bool = False

    @property
    def ok(self) -> bool:
        """Decisions came back, nothing was lost, nothing unexpected."""
        return not self.error and self.audit.ok

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return to_plain(self)


def describe(one: Interruption) -> str:
    """An interruption in a line."""
    place = " on the stack" if one.stack else ""
    state = f" and the state of {one.cards:,} cards" if one.cards else ""
    what, having = _told(one.what, in_turn=one.in_turn), "with a" if one.standby else "without"
    head = f"{what} of {one.mode}, {having} standby{state}{place}"
    if one.error:
        return f"{head}: {one.error}"
    return f"{head}: {one.seconds:g} s, in every partition {one.every_partition_s:g} s; {one.audit}"


def write_takeovers(file: Path, found: Sequence[Interruption], *, add: bool) -> list[dict[str, Any]]:
    """Writes the results; with `add`, those of other kinds that the file holds stay in it."""
    return write_items(file, [one.to_dict() for one in found], FIELDS, add=add)


def result_table(items: Sequence[Mapping[str, Any]]) -> Table:
    """A line a kind of interruption, of the items of a file."""
    table = Table(*_COLUMNS, "", title="Interruptions")
    for row in _rows(items):
        failed = next((item["error"] for item in row.items if item["error"]), "")
        style = "bold red" if failed or row.figures[-3] != "0" or row.figures[-1] != "0" else ""
        table.add_row(*row.figures, Text(failed), style=style)
    return table


def markdown_table(items: Sequence[Mapping[str, Any]]) -> str:
    """The same for the documentation."""
    return markdown(_COLUMNS, [[row.figures[0], f"`{row.figures[1]}`", *row.figures[2:]] for row in _rows(items)])


@dataclass(frozen=True)
class _Row:
    items: Sequence[Mapping[str, Any]]
    figures: list[str]


def _rows(items: Sequence[Mapping[str, Any]]) -> list[_Row]:
    rows = []
    for kind in dict.fromkeys(tuple(item[name] for name in FIELDS) for item in items):
        own = [item for item in items if tuple(item[name] for name in FIELDS) == kind]
        times, all_times = (_known(own, name) for name in ("seconds", "every_partition_s"))
        middle = round(median(times), 2) if times else None
        worst, every = (round(max(each), 2) if each else None for each in (times, all_times))
        lost, duplicated, unexpected = (_known(own, name) for name in ("lost", "duplicated", "unexpected"))
        counts = (sum(lost), max(duplicated, default=0), sum(unexpected))
        what, mode, *sides, cards, in_turn = kind
        words = (
            _told(what, in_turn=in_turn),
            mode,
            *("yes" if side else "no" for side in sides),
            f"{cards:,}" if cards else "-",
            str(len(own)),
        )
        figures = [shown(figure) for figure in (middle, worst, every, *counts)]
        rows.append(_Row(own, [*words, *figures]))
    return rows


def _told(what: str, *, in_turn: bool) -> str:
    return f"{what}, in turn" if in_turn else what


def _known(items: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    return [item[name] for item in items if item[name] is not None]
