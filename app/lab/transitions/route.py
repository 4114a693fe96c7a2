"""Which changes of mode are run, and in which order: as few starts of a mode as can be."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import cast, get_args

from fraud_filter.config import ModeName
from fraud_filter.errors import UsageError

Change = tuple[ModeName, ModeName]


def parse_changes(text: str) -> list[Change]:
    """The changes in a list such as "continuous:micro-batch,micro-batch:real-time"; all twelve when it is empty.

    Raises:
        UsageError: one of them is none.
    """
    modes = get_args(ModeName)
    if not text:
        return list(permutations(modes, 2))
    changes: list[Change] = []
    for word in text.split(","):
        old, _, new = word.strip().partition(":")
        if old not in modes or new not in modes or old == new:
            raise UsageError(
                f"argument --only: {word!r} is not accepted: give changes as FROM:TO, separated by commas, of two of "
                f"{', '.join(modes)}"
            )
        changes.append((cast(ModeName, old), cast(ModeName, new)))
    return list(dict.fromkeys(changes))


def order_changes(changes: Sequence[Change]) -> list[Change]:
    """The same in an order in which one goes on where the one before ended, as far as that can be.

    All twelve become one round trip.
    """
    left = list(changes)
    ordered: list[Change] = []
    while left:
        here = ordered[-1][1] if ordered else left[0][0]
        onward = [change for change in left if change[0] == here] or left
        # To where the most changes are left, so that the way does not end early.
        ordered.append(max(onward, key=lambda change: sum(other[0] == change[1] for other in left)))
        left.remove(ordered[-1])
    return ordered
