"""Where results are written: checked before the work, added to what other runs left."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Hashable, Sequence
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


def write_items(
    file: Path, new: Sequence[dict[str, Any]], key: Callable[[dict[str, Any]], Hashable], *, add: bool
) -> list[dict[str, Any]]:
    """Writes a list of results as JSON and returns it.

    Args:
        key: what a result is about; with `add`, those of others that the file holds stay in it, before the new ones.
    """
    known = {key(item) for item in new}
    old = json.loads(file.read_text(encoding="utf-8") or "[]") if add and file.exists() else []
    merged = [item for item in old if key(item) not in known] + list(new)
    file.write_text(json.dumps(merged, indent=2) + "\n", encoding="utf-8")
    return merged
