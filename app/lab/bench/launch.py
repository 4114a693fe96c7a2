"""What a contender is started with, and who watches it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fraud_filter.config import Settings
from lab.harness.embedded_stack import EmbeddedStack

#: What a start goes through, in this order.
Phase = Literal["starting", "warming up", "measuring", "draining", "auditing"]
#: Told each phase when it begins, and its seconds; 0 where they are not known.
Enter = Callable[[Phase, float], None]
#: Follows a start of the contender of this name on the topics of the settings, from before it is started.
Watch = Callable[[str, Settings], AbstractContextManager[Enter]]


@dataclass(frozen=True)
class Launch:
    """What a contender is started with: a stack whose settings name the topics, and `name`, of this start.

    `start` are offsets of the input topic by partition, `folder` is empty and takes the checkpoint, `own` are settings
    of the contender alone.
    """

    stack: EmbeddedStack
    start: Mapping[int, int]
    name: str
    folder: Path
    own: Mapping[str, Any] = field(default_factory=dict)


def unwatched(_: str, __: Settings) -> AbstractContextManager[Enter]:
    """Nobody looks, so that nothing costs time that the contender could have."""
    return nullcontext(lambda _phase, _seconds: None)
