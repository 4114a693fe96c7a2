"""Where a verb prints its tables, and what it says at its end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console


#: Columns where no terminal tells its width, such as in a log: no table needs more.
_LOG_WIDTH = 180


def open_console() -> Console:
    """The standard output, as wide as the terminal."""
    from fraud_filter.text.console import PrintableConsole

    return PrintableConsole(width=None if sys.stdout.isatty() else _LOG_WIDTH)


def tell_end(problems: Iterable[str], write: Callable[[], Iterable[Path]]) -> None:
    """Names what went wrong, on the standard error; then writes the report, and names its files."""
    for problem in problems:
        click.echo(f"fraud-filter: {problem}", err=True)
    for path in write():
        click.echo(f"written: {path.resolve()}")
