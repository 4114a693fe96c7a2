"""Files that a verb writes at its end: its options for them, checked before its work rather than after it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from fraud_filter.errors import FraudFilterError, UsageError
from fraud_filter.text.tables import find_place


def require_writable(_: click.Context, option: click.Parameter, file: Path | None) -> Path | None:
    """A click callback: makes the file if it is not there.

    Raises:
        UsageError: it can't be written.
    """
    if file:
        try:
            file.touch()
        except OSError as error:
            raise UsageError(
                f"argument {option.opts[0]}: {file} can't be written: {error.strerror or error}; name another file"
            ) from None
    return file


def results_option(name: str) -> Callable[..., Any]:
    """`--output FILE`, by default `name` in the current directory."""
    return click.option(
        "--output",
        type=click.Path(dir_okay=False, path_type=Path),
        default=Path(name),
        show_default=True,
        callback=require_writable,
        help="where the results go",
    )


def docs_option(example: str, name: str) -> Callable[..., Any]:
    """`--docs FILE`: a Markdown file with a place of that `name` for the table of results, such as `example`."""

    def require_place(_: click.Context, option: click.Parameter, file: Path | None) -> Path | None:
        if file:
            try:
                find_place(file, name)
            except FraudFilterError as error:
                raise UsageError(f"argument {option.opts[0]}: {error}") from None
        return file

    return click.option(
        "--docs",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        callback=require_place,
        help=f"also write the table between the markers in this Markdown file, such as {example}",
    )
