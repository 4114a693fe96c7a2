"""Files that a verb writes at its end: its options for them, checked before its work rather than after it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from fraud_filter.errors import UsageError


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


def docs_option(place: str) -> Callable[..., Any]:
    """`--docs FILE`: a Markdown file with a place for the table of results, such as `place`."""
    return click.option(
        "--docs",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help=f"also write the table between the markers in this Markdown file, such as {place}",
    )
