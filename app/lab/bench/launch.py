"""What a contender is started with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.harness.embedded_stack import EmbeddedStack


@dataclass(frozen=True)
class Launch:
    """What a contender is started with: a stack whose settings name the topics, and `name`, of this start.

    `checkpoints`: the directory of Spark's checkpoint; None: the workspace.
    """

    stack: EmbeddedStack
    start: Mapping[int, int]
    name: str
    checkpoints: Path | None = None
