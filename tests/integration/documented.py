"""Tables in the documentation that tests make: WRITE_DOCS=1 writes them, otherwise they are held against the tests'."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from fraud_filter.home import HOME
from lab.harness import tables

FILE = HOME / "docs/results/network.md"


def hold(name: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Fails when the table between the marks of this name is not this one."""
    table = tables.markdown(columns, rows)
    if os.environ.get("WRITE_DOCS") == "1":
        tables.write_between(FILE, name, table)
    assert _written(name) == table.splitlines(), f"{FILE}, {name}: WRITE_DOCS=1 writes it"


def rows_of(name: str) -> list[tuple[str, ...]]:
    """The rows of the table between the marks of this name."""
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in _written(name)[2:]]


def changes(former: Iterable[Sequence[str]], rows: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
    """The rows that are new or others than before, by their first two cells; one that is gone says `closed`."""
    before, now = ({tuple(row[:2]): tuple(row[2:]) for row in table} for table in (former, rows))
    told = [key + rest for key, rest in now.items() if before.get(key) != rest]
    gone = [(*key, rest[0], "closed", "-") for key, rest in before.items() if key not in now]
    return sorted(told + gone)


def in_short(words: Sequence[str]) -> str:
    """What may be done, such as `read payments, payments.flagged`: the verb of names in a row stands once."""
    told, before = [], ""
    for word in words:
        verb, _, name = word.partition(" ")
        told.append(name if verb == before and verb in ("read", "write", "group") else word)
        before = verb
    return ", ".join(told)


def _written(name: str) -> list[str]:
    before, after = tables.find_place(FILE, name)
    return FILE.read_text(encoding="utf-8").removeprefix(before).removesuffix(after).strip().splitlines()
