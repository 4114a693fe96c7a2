"""Checks of where results are written: better before the work than after it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from fraud_filter.errors import UsageError


def check_directory(argument: str, directory: Path) -> None:
    """Makes the directory where it is missing, and proves that it can be written to.

    Args:
        argument: the option that named it, such as `--output`.

    Raises:
        UsageError: it can't be made or written to.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise UsageError(
            f"argument {argument}: {str(directory)!r} can't be written to ({error.strerror}): give another"
        ) from None
