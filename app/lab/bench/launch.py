"""What a contender is started with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fraud_filter.config import Settings
from lab.harness.workspace import Workspace


@dataclass(frozen=True)
class Launch:
    """What a contender is started with: settings that name the broker and the topics, and `name`, of this start.

    `checkpoints`: the directory of Spark's checkpoint; None: the workspace.
    """

    settings: Settings
    start: Mapping[int, int]
    workspace: Workspace
    java_home: Path
    name: str
    checkpoints: Path | None = None
