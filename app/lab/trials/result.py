"""What a trial came to, as JSON, and as a table of all trials of a kind."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table
from rich.text import Text

from fraud_filter.errors import UsageError
from lab.harness.outcome import NOT_AUDITED, Audited
from lab.harness.tables import format_number, markdown
from lab.trials.plan import Trial

#: What is told apart in a file of results.
_FIELDS = ("stage", "disturbance", "mode", "to", "standby", "cards", "in_turn", "records", "given")
_kind = itemgetter(*_FIELDS)
_COLUMNS = (
    "disturbance", "stage", "mode", "standby", "tries", "gap, s, median", "gap, s, worst", "recovery, s, worst", "lost",
    "duplicated, worst", "unexpected", "seen as",
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """One trial under load.

    `gap_s`: seconds from the disturbance to the first decision about a payment that was appended after it; of a stop, a
    warm change, and on the stack: the longest time between two decisions; of an outage: from the filter's start to its
    first decision. `recovery_s`: the same in each partition; on the stack seconds from the disturbance, or from the end
    of an outage, to decisions that go on, at most `limit_s` where that is promised; of an outage of the filter: from
    its first decision until all that came in meanwhile was decided. None, and a reason in `error`, when they did not
    come. `audit`: of this trial alone. `seen_as`: what a user sees of it. `details`: figures of this disturbance.
    """

    trial: Trial
    gap_s: float | None = None
    recovery_s: float | None = None
    audit: Audited = NOT_AUDITED
    limit_s: float | None = None
    seen_as: str = ""
    error: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Decisions came back in time, nothing was lost, nothing unexpected."""
        is_late = self.limit_s is not None and (self.recovery_s or 0) > self.limit_s
        return not self.error and self.audit.ok and not is_late

    def to_dict(self) -> dict[str, Any]:
        """For JSON: one level, but for `details`."""
        plain = asdict(self)
        return {**plain.pop("trial"), **plain.pop("audit"), **plain}

    def __str__(self) -> str:
        if self.error:
            return f"{self.trial}: {self.error}"
        seen = f"; {self.seen_as}" if self.seen_as else ""
        gap, recovery = map(format_number, (self.gap_s, self.recovery_s))
        return f"{self.trial}: {gap} s, recovered after {recovery} s; {self.audit}{seen}"


def read_outcomes(file: Path) -> list[dict[str, Any]]:
    """The results that an earlier run left in a file; none where it is not there, or empty.

    Raises:
        UsageError: the file holds something else.
    """
    try:
        found = json.loads(file.read_text(encoding="utf-8") or "[]") if file.exists() else []
    except (OSError, ValueError) as error:
        raise UsageError(f"argument --add: {file} can't be read: {error}; name another file with --output") from None
    if not isinstance(found, list) or not all(isinstance(one, dict) and one.keys() >= set(_FIELDS) for one in found):
        raise UsageError(f"argument --add: {file} holds no results of this command: name another file with --output")
    return found


def write_outcomes(file: Path, found: Sequence[Outcome], *, add: bool) -> list[dict[str, Any]]:
    """Writes the results as JSON, and returns them; with `add`, those of other kinds that the file holds stay in it."""
    new = [one.to_dict() for one in found]
    known = set(map(_kind, new))
    merged = [item for item in (read_outcomes(file) if add else []) if _kind(item) not in known] + new
    file.write_text(json.dumps(merged, indent=2) + "\n", encoding="utf-8")
    return merged


def result_table(items: Sequence[Mapping[str, Any]]) -> Table:
    """A line a kind of trial, of the items of a file."""
    table = Table(*_COLUMNS, title="Trials")
    for own in _kinds(items):
        cells = _cells(own)
        bad = any(item["error"] or item["lost"] or item["unexpected"] for item in own)
        # Texts: errors have brackets, which are marks to rich otherwise.
        table.add_row(*map(Text, cells), style="bold red" if bad else "")
    return table


def markdown_table(items: Sequence[Mapping[str, Any]]) -> str:
    """The same for the documentation."""
    return markdown(_COLUMNS, map(_cells, _kinds(items)))


def _kinds(items: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    kinds: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for item in items:
        kinds.setdefault(_kind(item), []).append(item)
    return list(kinds.values())


def _cells(own: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line of the table, of trials of one kind."""
    first = own[0]
    known = {
        name: [item[name] for item in own if item[name] is not None]
        for name in ("gap_s", "recovery_s", "lost", "duplicated", "unexpected")
    }
    gaps, late = known["gap_s"], known["recovery_s"]
    middle = round(median(gaps), 2) if gaps else None
    worst, slowest = (round(max(each), 2) if each else None for each in (gaps, late))
    totals = [sum(known[name]) if known[name] else None for name in ("lost", "unexpected")]
    words = [first["disturbance"], *_conditions(first)]
    return [
        ", ".join(words),
        first["stage"],
        first["mode"] if first["mode"] == first["to"] else f"{first['mode']} → {first['to']}",
        "yes" if first["standby"] else "no",
        str(len(own)),
        *map(format_number, (middle, worst, slowest, totals[0], max(known["duplicated"], default=None), totals[1])),
        "; ".join(dict.fromkeys(told for item in own for told in _told(item))),
    ]


def _conditions(item: Mapping[str, Any]) -> list[str]:
    return [
        *(["in turn"] if item["in_turn"] else []),
        *([f"{item['cards']:,} cards"] if item["cards"] else []),
        *([f"{item['records']:,} records"] if item["records"] else []),
        *([item["given"]] if item["given"] else []),
    ]


def _told(item: Mapping[str, Any]) -> list[str]:
    details = item["details"]
    speed = f"{details['records_per_s']:,} records/s" if details.get("records_per_s") else ""
    memory = f"peak {details['peak_mib']:,} MiB" if details.get("peak_mib") else ""
    return [told for told in (item["error"], speed, memory, *item["seen_as"].split("; ")) if told]
