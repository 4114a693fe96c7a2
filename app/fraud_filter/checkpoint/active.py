"""What the active filter runs with, kept in the checkpoint: a standby compares it with its own."""

from __future__ import annotations

import json
from collections.abc import Mapping

from fraud_filter.checkpoint.entries import BrokenEntryError
from fraud_filter.checkpoint.files import CheckpointFiles
from fraud_filter.checkpoint.kept import FOLDER

ACTIVE = f"{FOLDER}/active.json"
#: By name of what is compared: a digest of its value.
Digests = Mapping[str, str]


def write_active(files: CheckpointFiles, digests: Digests) -> None:
    """Keeps it, in place of what was kept.

    Raises:
        CheckpointError: the file system refuses.
    """
    files.write(ACTIVE, json.dumps(dict(digests)).encode())


def differing(files: CheckpointFiles, own: Digests) -> list[str]:
    """The names of what the active filter has otherwise; none where nothing is known of it.

    Raises:
        CheckpointError: the file system refuses.
    """
    if not files.exists(ACTIVE):
        return []
    try:
        found = json.loads(files.read(ACTIVE))
        return sorted(name for name in own.keys() | found.keys() if own.get(name) != found.get(name))
    except (BrokenEntryError, ValueError, AttributeError):  # nothing depends on it
        return []
