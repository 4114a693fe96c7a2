"""What a start is given: what its contender is started with, and who watches it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fraud_filter.config import Settings
from lab.harness.embedded_stack import EmbeddedStack

#: What a start goes through, in this order.
Phase = Literal["starting", "warming up", "measuring", "draining", "auditing"]
#: Told each phase when it begins, and its seconds; 0 where they are not known.
Enter = Callable[[Phase, float], None]
#: Follows a start on the topics that its settings name, from before the contender is started.
Watch = Callable[[Settings], AbstractContextManager[Enter]]


@dataclass(frozen=True)
class Launch:
    """What a contender is started with: a stack whose settings name the topics, and `name`, of this start.

    `checkpoints`: the directory of Spark's checkpoint; None: the workspace.
    """

    stack: EmbeddedStack
    start: Mapping[int, int]
    name: str
    checkpoints: Path | None = None


def unwatched(_: Settings) -> AbstractContextManager[Enter]:
    """Nobody looks, so that nothing costs time that the contender could have."""
    return nullcontext(lambda _phase, _seconds: None)
