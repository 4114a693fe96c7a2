"""How many steps Java's pattern matcher may take over a text of a given length. Knows no Spark.

`java.util.regex` tries one way after the other: on a text made for it, a pattern such as `(a+)+$` takes longer than
anybody waits, and each group that repeats costs a frame of the thread's stack. So only patterns are taken whose ways
can be counted from what is written, by a bound that holds for every text.
"""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from dataclasses import dataclass
from functools import reduce
from typing import Any

#: Python's own parser of patterns; its syntax tree is the same in all versions, its place is not.
_parser: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")

#: A group that repeats more often than this could fill the stack.
_GROUP_REPEATS = 100
_ONE_CHARACTER = {"LITERAL", "NOT_LITERAL", "ANY", "IN", "CATEGORY", "RANGE", "NEGATE"}
_REPEATS = {"MAX_REPEAT", "MIN_REPEAT"}


class PatternError(ValueError):
    """The pattern can't be bounded; the message says why."""


@dataclass(frozen=True)
class _Ways:
    """Bounds from one place of a text: ways to match there, and steps to try them all."""

    ways: int
    steps: int

    def then(self, after: _Ways) -> _Ways:
        """One after the other."""
        return _Ways(self.ways * after.ways, self.steps + self.ways * after.steps)

    def beside(self, other: _Ways) -> _Ways:
        """Either of the two."""
        return _Ways(self.ways + other.ways, self.steps + other.steps)


_NOTHING = _Ways(1, 0)


@dataclass(frozen=True)
class Pattern:
    """A regular expression of the part of the syntax that Java and Python read alike.

    `groups` is the number of its capturing groups.
    """

    groups: int
    _tree: Any

    def steps(self, length: int) -> int:
        """Most steps of one search in a text of `length` characters."""
        found = _sequence(self._tree, length)
        return found.steps + 1 if _begins_at_start(self._tree) else (length + 1) * (found.steps + 1)


def parse(text: str) -> Pattern:
    """Reads a regular expression.

    Raises:
        PatternError: it is no pattern, or has parts that Java reads in another way, or whose ways can't be counted.
    """
    if _has_nested_brackets(text):
        raise PatternError("Java reads brackets within brackets in its own way; put a backslash before [, ] and &")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sets of sets, which were refused
            tree = _parser.parse(text)
    except (_parser.error, OverflowError, RecursionError) as error:
        raise PatternError(f"{error}; write it with characters, classes, groups, |, ?, *, + and {{m,n}}") from None
    if tree.state.flags & (re.VERBOSE | re.MULTILINE):
        raise PatternError("the flags x and m change what a pattern means; write it without them")
    _sequence(tree, 1)  # refuses what it does not know
    return Pattern(tree.state.groups - 1, tree)


def like_steps(pattern: str, length: int) -> int:
    """Most steps of LIKE: each `%` but the last tries the rest of the pattern from each place."""
    inner = pattern.rstrip("%").count("%")
    one_by_one = pattern.strip("%").count("%") == 0
    return (length + 1) * len(pattern) if one_by_one else int((length + 1) ** max(inner, 1)) * len(pattern)


def _has_nested_brackets(text: str) -> bool:
    """Whether a class of characters holds [, && or, as its first, ], which Java does not read as Python does."""
    plain = re.sub(r"\\.", "..", text, flags=re.DOTALL)
    classes = re.findall(r"\[\^?(\]?[^\]]*)", plain)
    return any("[" in characters or "&&" in characters or characters.startswith("]") for characters in classes)


def _begins_at_start(tree: Any) -> bool:
    if len(tree) == 0:
        return False
    operation, argument = str(tree[0][0]), tree[0][1]
    if operation == "AT":
        return str(argument) in ("AT_BEGINNING", "AT_BEGINNING_STRING")
    if operation == "SUBPATTERN":
        return _begins_at_start(argument[-1])
    return operation == "BRANCH" and all(_begins_at_start(branch) for branch in argument[1])


def _sequence(tree: Any, length: int) -> _Ways:
    return reduce(_Ways.then, (_one(str(operation), argument, length) for operation, argument in tree), _NOTHING)


def _one(operation: str, argument: Any, length: int) -> _Ways:
    if operation in _ONE_CHARACTER or operation == "AT":
        return _Ways(1, 1)
    if operation == "SUBPATTERN":
        _, added, removed, tree = argument
        if added or removed:
            raise PatternError("it has flags inside; give them at its beginning, as in (?i)abc")
        return _sequence(tree, length)
    if operation == "BRANCH":
        return reduce(_Ways.beside, (_sequence(tree, length) for tree in argument[1]))
    if operation in _REPEATS:
        return _repeated(argument, length)
    raise PatternError(f"{operation.lower().replace('_', ' ')} is a part whose ways can't be counted")


def _repeated(argument: Any, length: int) -> _Ways:
    least, most, tree = argument
    once = _sequence(tree, length)
    count = min(int(most), length + int(least))
    if len(tree) == 1 and str(tree[0][0]) in _ONE_CHARACTER:
        return _Ways(count - min(int(least), count) + 1, count + 1)
    if int(most) > _GROUP_REPEATS:
        raise PatternError(
            f"a group repeats without a bound: repeat single characters, or {{0,{_GROUP_REPEATS}}} times"
        )
    found, chain = _NOTHING, _NOTHING
    for _ in range(int(most)):
        chain = chain.then(once)
        found = found.beside(chain)
    return found
