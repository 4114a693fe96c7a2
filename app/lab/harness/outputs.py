"""Where results are written: checked before the work, added to what other runs left."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

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


def read_items(file: Path, fields: Sequence[str]) -> list[dict[str, Any]]:
    """The results that an earlier run left in a file; none where it is not there, or empty.

    Args:
        fields: what says what a result is about; each has all of them.

    Raises:
        UsageError: the file holds something else.
    """
    try:
        found = json.loads(file.read_text(encoding="utf-8") or "[]") if file.exists() else []
    except (OSError, ValueError) as error:
        raise UsageError(f"argument --add: {file} can't be read: {error}; name another file with --output") from None
    if not isinstance(found, list) or not all(isinstance(one, dict) and one.keys() >= set(fields) for one in found):
        raise UsageError(f"argument --add: {file} holds no results of this command: name another file with --output")
    return found


def write_items(file: Path, new: Sequence[dict[str, Any]], fields: Sequence[str], *, add: bool) -> list[dict[str, Any]]:
    """Writes a list of results as JSON and returns it.

    Args:
        fields: what says what a result is about; with `add`, those about others that the file holds stay in it, before
            the new ones.

    Raises:
        UsageError: with `add`, the file holds something else.
    """
    about = itemgetter(*fields)
    known = set(map(about, new))
    merged = [item for item in (read_items(file, fields) if add else []) if about(item) not in known] + list(new)
    file.write_text(json.dumps(merged, indent=2) + "\n", encoding="utf-8")
    return merged
