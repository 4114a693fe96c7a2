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
    before, after = tables.find_place(FILE, name)
    written = FILE.read_text(encoding="utf-8").removeprefix(before).removesuffix(after).strip()
    assert written.splitlines() == table.splitlines(), f"{FILE}, {name}: WRITE_DOCS=1 writes it"
