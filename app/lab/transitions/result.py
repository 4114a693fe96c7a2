"""What a change of mode came to, as JSON and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.table import Table
from rich.text import Text

from fraud_filter.config import ModeName
from fraud_filter.text.outputs import write_items
from fraud_filter.text.tables import markdown, shown
from lab.harness.outcome import NOT_AUDITED, Audited, to_plain

StopKind = Literal["clean", "kill", "handover"]

#: What is told apart in a file of results.
FIELDS = ("from", "to", "stop")
_COLUMNS = (*FIELDS, "lost", "duplicated", "unexpected", "seconds", "how")
_STOPS = {"clean": "clean", "kill": "killed", "handover": "handover"}
_PAIR_COLUMNS = (
    "from", "to", "lost",
    *(f"{what}, {word}" for what in ("duplicated", "seconds") for word in _STOPS.values()), "checkpoint",
)  # fmt: skip


@dataclass(frozen=True)
class Transition:
    """One change of mode on one checkpoint, under load.

    `how`: "unchanged", or what was repaired before the start. `audit`: of it alone. `seconds`: from the stop request,
    at a handover from the moment at which the new filter has the lock, until a payment that came after the stop was
    decided; None, and a reason in `error`, when the new mode did not get there.
    """

    old: ModeName
    new: ModeName
    stop: StopKind
    how: str = ""
    audit: Audited = NOT_AUDITED
    seconds: float | None = None
    error: str = ""

    @property
    def ok(self) -> bool:
        """Nothing lost, nothing unexpected, and the new mode decides payments."""
        return not self.error and self.audit.ok

    def to_dict(self) -> dict[str, Any]:
        """For JSON: `old` and `new` are `from` and `to` there."""
        rest = {name: value for name, value in to_plain(self).items() if name not in ("old", "new")}
        return {"from": self.old, "to": self.new, **rest}


def write_transitions(file: Path, found: Sequence[Transition], *, add: bool) -> list[dict[str, Any]]:
    """Writes the results; with `add`, those of other changes (or stops) that the file holds stay in it."""
    return write_items(file, [transition.to_dict() for transition in found], FIELDS, add=add)


def result_table(found: Sequence[Transition]) -> Table:
    """A line a change."""
    table = Table(*_COLUMNS, title="Changes of the mode")
    for one in found:
        figures = (shown(figure) for figure in (*vars(one.audit).values(), one.seconds))
        style = "" if one.ok else "bold red"
        table.add_row(one.old, one.new, one.stop, *figures, Text(one.error or one.how), style=style)
    return table


def markdown_table(items: Sequence[Mapping[str, Any]]) -> str:
    """The same for the documentation, of the items of a file: a line a change, all ways to stop beside each other."""
    rows = []
    for old, new in dict.fromkeys((item["from"], item["to"]) for item in items):
        by_stop = {item["stop"]: item for item in items if (item["from"], item["to"]) == (old, new)}
        figures = [shown(by_stop.get(stop, {}).get(name)) for name in ("duplicated", "seconds") for stop in _STOPS]
        lost = " + ".join(shown(item["lost"]) for item in by_stop.values())
        how = dict.fromkeys(item["error"] or item["how"].partition(":")[0] for item in by_stop.values())
        rows.append([f"`{old}`", f"`{new}`", lost, *figures, ", ".join(how)])
    return markdown(_PAIR_COLUMNS, rows)
