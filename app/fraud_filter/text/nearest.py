"""The known name that a wrong one was probably meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """` (did you mean 'mode'?)`, or nothing where no known name is like it. Case does not count.

    Args:
        prefix: a beginning that many names have: it would make all of them alike, and is left out.
    """
    # Of two names that differ by the prefix alone, the one with it.
    by_letters = {
        each.removeprefix(prefix).casefold(): each for each in sorted(known, key=lambda each: each.startswith(prefix))
    }
    found = get_close_matches(name.removeprefix(prefix).casefold(), by_letters, n=1)
    return f" (did you mean {by_letters[found[0]]!r}?)" if found else ""
