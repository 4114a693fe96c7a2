"""Which faults come when, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

#: Seconds from one fault to the next, and quiet ones at the end: an hour has eleven faults and more.
_LEAST_S, _MOST_S = 60.0, 300.0
_QUIET_S = 45.0


@dataclass(frozen=True)
class Due:
    """A fault, `at_s` seconds after the start of the soak."""

    at_s: float
    fault: str


def draw(seed: int, seconds: float, faults: Sequence[str]) -> list[Due]:
    """Faults at random intervals for `seconds`; the same for a seed. At least one, however short it is.

    Each comes once before any comes again, so that an hour has seen nearly all.
    """
    chance = random.Random(seed)
    due: list[Due] = []
    deck: list[str] = []
    at_s = min(chance.uniform(_LEAST_S, _MOST_S), seconds / 3)
    while not due or at_s < seconds - _QUIET_S:
        if not deck:
            deck = list(faults)
            chance.shuffle(deck)
        due.append(Due(round(at_s, 1), deck.pop()))
        at_s += chance.uniform(_LEAST_S, _MOST_S)
    return due
