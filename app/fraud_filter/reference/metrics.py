"""Writes the tables of docs/metrics.md from the catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from fraud_filter.home import HOME
from fraud_filter.metrics.catalogue import CATALOGUE, Program
from fraud_filter.modes import MODES
from fraud_filter.text.tables import markdown, write_between

FILE = HOME / "docs/metrics.md"
_COLUMNS = ("metric", "type", "unit", "labels", "modes", "meaning")


def write(file: Path = FILE) -> None:
    """Replaces the table of each program.

    Raises:
        FraudFilterError: the file has no place for one, or can't be written.
    """
    for program in get_args(Program):
        write_between(file, program, _table(program))


def _table(program: Program) -> str:
    entries = [entry for entry in CATALOGUE if entry.program == program]
    return markdown(
        _COLUMNS,
        [
            (f"`{entry.name}`", entry.type, entry.unit, _code(entry.labels), _modes(entry.modes), entry.help)
            for entry in entries
        ],
    )


def _modes(names: frozenset[str]) -> str:
    return "all" if names == set(MODES) else _code(tuple(name for name in MODES if name in names))


def _code(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "-"
