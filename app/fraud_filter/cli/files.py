"""Files that a verb writes at its end: its options for them, checked before its work rather than after it."""

from __future__ import annotations

from pathlib import Path

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
