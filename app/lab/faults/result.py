"""What a fault came to, as JSON, as a table in the terminal, and as one in the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from rich.table import Table
from rich.text import Text

from fraud_filter.config import ModeName
from fraud_filter.text.outputs import write_items
from fraud_filter.text.tables import markdown, shown
from lab.harness.outcome import NOT_AUDITED, Audited, to_plain

#: What is told apart in a file of results.
FIELDS = ("fault", "mode", "standby")
_FIGURES = ("lost", "duplicated", "recovery, s")
_COLUMNS = (*FIELDS[:2], *_FIGURES, *(f"{name}, with a standby" for name in _FIGURES), "seen as")


@dataclass(frozen=True)
class Outcome:
    """One fault in one mode, under load.

    `audit`: of it alone; payments that were removed and that the filter has reported are not lost. `recovery_s`:
    seconds from the fault, or from the end of the outage, to fresh decisions, at most `limit_s` where that is promised;
    None, and a reason in `error`, when they did not come. `seen_as`: what a user sees. `standby`: one was there.
    """

    fault: str
    mode: ModeName
    audit: Audited = NOT_AUDITED
    recovery_s: float | None = None
    limit_s: float | None = None
    seen_as: str = ""
    error: str = ""
    standby: bool = False

    @property
    def ok(self) -> bool:
        """Nothing lost, nothing unexpected, and fresh decisions in time."""
        is_late = self.limit_s is not None and (self.recovery_s or 0) > self.limit_s
        return not self.error and self.audit.ok and self.recovery_s is not None and not is_late


def write_outcomes(file: Path, found: Sequence[Outcome], *, add: bool) -> list[dict[str, Any]]:
    """Writes the results; with `add`, those about something else that the file holds stay in it."""
    return write_items(file, [to_plain(outcome) for outcome in found], FIELDS, add=add)


def result_table(found: Sequence[Outcome]) -> Table:
    """A line a fault and mode."""
    table = Table(*FIELDS, "lost", "duplicated", "unexpected", "recovery, s", "seen as", title="Faults")
    for one in found:
        figures = (shown(figure) for figure in (*vars(one.audit).values(), one.recovery_s))
        told = f"{one.error}; {one.seen_as}" if one.error else one.seen_as
        # A text: errors have brackets, which are marks to rich otherwise.
        sides = (one.fault, one.mode, "yes" if one.standby else "no")
        table.add_row(*sides, *figures, Text(told), style="" if one.ok else "bold red")
    return table


def markdown_table(items: Sequence[Mapping[str, Any]], order: Sequence[str]) -> str:
    """The same for the documentation, of the items of a file: a line a fault and mode, alone and with a standby.

    In the order of the faults' names, then of the modes.
    """
    rows, modes = [], get_args(ModeName)
    found = {(item["fault"], item["mode"], item["standby"]): item for item in items}
    kinds = sorted({kind[:2] for kind in found}, key=lambda kind: (order.index(kind[0]), modes.index(kind[1])))
    for fault, mode in kinds:
        sides = [found.get((fault, mode, standby)) for standby in (False, True)]
        figures = [
            shown(side[name] if side else None) for side in sides for name in ("lost", "duplicated", "recovery_s")
        ]
        told = [side and ("; ".join(filter(None, (side["error"], side["seen_as"]))) or "nothing") for side in sides]
        words = [f"{head}{word}" for head, word in zip(("", "with a standby: "), told, strict=True) if word]
        rows.append([f"`{fault}`", f"`{mode}`", *figures, "; ".join(words)])
    return markdown(_COLUMNS, rows)
