"""Bounds of what an expression makes of a record of the largest size: how much text, and in how many steps.

The bounds hold for every record, so that none can fill the memory or stop the query. A step is about a character looked
at, one to five nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fraud_filter.rules import patterns as rule_patterns
from fraud_filter.rules.tree import Node

#: Most steps of a rule: some tenths of a second, and only for a record made to take them.
MOST_STEPS = 100_000_000
#: Most characters of a text, or of all elements of an array, that a rule makes.
MOST_CHARACTERS = 32 * 2**20
#: The longest text of a number, a time or a truth value.
_VALUE = 80
#: What an element of an array costs beside its characters.
_ELEMENT = 64
#: Texts are compared eight bytes at a time.
_AT_ONCE = 8
#: Digits after the point that rounding takes: more of them are counted out one by one.
_MOST_DIGITS = 38


class RefusedError(ValueError):
    """A part of a rule has no bound, or one that is too high; the message says why, and what to write instead."""


@dataclass(frozen=True)
class Bound:
    """Most characters of a value (an array's elements together), most elements of it or of an array within it, the
    steps to make it, and whether it may be text.
    """

    characters: int
    elements: int = 1
    steps: int = 0
    is_text: bool = True


#: Bounds of an expression, from its node and the bounds of its children.
Shape = Callable[[Node, list[Bound]], Bound]


def literal(node: Node) -> Bound:
    """What stands in the rule itself."""
    return Bound(len(node.value or ""), is_text=node.type == "string")


def column(node: Node, record_bytes: int) -> Bound:
    """A field of the payment: nearly all of the record, if it is text."""
    is_value = node.type not in ("string", "binary", "complex")
    return (
        Bound(_VALUE, is_text=False) if is_value else Bound(record_bytes, record_bytes if node.type == "complex" else 1)
    )


def value(_node: Node, given: list[Bound]) -> Bound:
    """A number, time or truth value, found by looking at each character once."""
    return Bound(_VALUE, steps=_steps(given) + _characters(given), is_text=False)


def converted(node: Node, given: list[Bound]) -> Bound:
    """A value of another type. A text such as 1e-999999999 never ends as a DECIMAL, or ends the query."""
    if node.type.startswith("decimal") and given[0].is_text and node.children[0].kind != "Literal":
        raise RefusedError("makes a DECIMAL of a text, which may end the query; make a DOUBLE of it")
    return same_text(node, given) if node.type in ("string", "binary", "complex") else value(node, given)


def same_text(_node: Node, given: list[Bound]) -> Bound:
    """A text, or an array, no larger than the operands together."""
    elements = max([1, *(bound.elements for bound in given)])  # coalesce() has no operand
    return Bound(_characters(given), elements, _steps(given) + _characters(given), any(b.is_text for b in given))


def longer_text(_node: Node, given: list[Bound]) -> Bound:
    """A text that may have three characters for one: capitals, hexadecimal digits."""
    return Bound(3 * _characters(given) + _VALUE, steps=_steps(given) + 3 * _characters(given))


def array(_node: Node, given: list[Bound]) -> Bound:
    """An array with an element for each operand."""
    elements = max([len(given), *(bound.elements for bound in given)])
    return Bound(_characters(given), elements, _steps(given) + len(given))


def joined(_node: Node, given: list[Bound]) -> Bound:
    """Texts, or arrays, one behind the other."""
    size = _characters(given)
    return Bound(size, sum(bound.elements for bound in given), _steps(given) + size)


def part(node: Node, given: list[Bound]) -> Bound:
    """The beginning, middle or end of a text: as long as the last operand says, if that is a number in the rule."""
    longest = _whole(node.children[-1]) if len(node.children) > 1 else None
    size = given[0].characters if longest is None else min(given[0].characters, max(longest, 0))
    return Bound(size, steps=_steps(given) + given[0].characters)


def element(_node: Node, given: list[Bound]) -> Bound:
    """One element of an array, or one field."""
    return Bound(given[0].characters, given[0].elements, _steps(given) + 1)


def search(_node: Node, given: list[Bound]) -> Bound:
    """A value found by looking for the second operand at each place of the first."""
    return Bound(_VALUE, steps=_steps(given) + _search_steps(given))


def search_text(_node: Node, given: list[Bound]) -> Bound:
    """A text that is no longer than the first operand, found by looking for the second at each place of it."""
    return Bound(given[0].characters, steps=_steps(given) + _search_steps(given))


def replaced(node: Node, given: list[Bound]) -> Bound:
    """A text in which each find is replaced by another text."""
    found, put = _text(node, 1, "the text to look for"), _text(node, 2, "the replacement")
    growth = max(1.0, len(put) / max(1, len(found)))
    return Bound(round(given[0].characters * growth), steps=_steps(given) + round(_search_steps(given) * growth))


def padded(node: Node, given: list[Bound]) -> Bound:
    """A text of a length that is a number in the rule."""
    length = max(_number(node, 1, "the length"), 0)
    return Bound(length, steps=_steps(given) + given[0].characters + length)


def repeated(node: Node, given: list[Bound]) -> Bound:
    """A text so many times; of a blank, where the number is the only operand."""
    times = max(_number(node, len(node.children) - 1, "how often"), 0)
    size = times * (given[0].characters if len(node.children) > 1 else 1)
    return Bound(size, steps=_steps(given) + size)


def distance(_node: Node, given: list[Bound]) -> Bound:
    """The number of changes from one text to the other: each character is compared with each."""
    return Bound(_VALUE, steps=_steps(given) + given[0].characters * given[1].characters)


def rounded(node: Node, given: list[Bound]) -> Bound:
    """A number with so many digits."""
    if abs(_number(node, 1, "the number of digits")) > _MOST_DIGITS:
        raise RefusedError(f"rounds to more than {_MOST_DIGITS} digits; give fewer")
    return value(node, given)


def formatted(node: Node, given: list[Bound]) -> Bound:
    """A value read by a format, if there is one."""
    if len(node.children) > 1:
        _text(node, 1, "the format")
    return value(node, given)


def like(node: Node, given: list[Bound]) -> Bound:
    """Whether a text is like a pattern with `%` and `_`."""
    pattern = _text(node, 1, "the pattern")
    return Bound(_VALUE, steps=_steps(given) + rule_patterns.like_steps(pattern, given[0].characters))


def matched(node: Node, given: list[Bound]) -> Bound:
    """Whether a regular expression is found in a text."""
    return Bound(_VALUE, steps=_steps(given) + _pattern(node).steps(given[0].characters))


def extracted(node: Node, given: list[Bound]) -> Bound:
    """What a group of a regular expression has found."""
    groups, group = _pattern(node).groups, _number(node, 2, "the number of the group")
    if not 0 <= group <= groups:
        raise RefusedError(f"asks for group {group} of a pattern that has {groups}; give 0 to {groups}")
    return Bound(given[0].characters, steps=matched(node, given).steps)


def rewritten(node: Node, given: list[Bound]) -> Bound:
    """A text in which each find of a regular expression is replaced by another text."""
    put, begin = _text(node, 2, "the replacement"), _number(node, 3, "the position")
    if "$" in put or "\\" in put or begin < 1:
        raise RefusedError("has a replacement with $ or a backslash, or a position below 1; write them plainly")
    size = given[0].characters + (given[0].characters + 1) * len(put)
    return Bound(size, steps=matched(node, given).steps + size)


def split(node: Node, given: list[Bound]) -> Bound:
    """The parts of a text between the finds of a regular expression."""
    most = _number(node, 2, "the largest number of parts")
    elements = given[0].characters + 1 if most <= 0 else most
    return Bound(given[0].characters + _ELEMENT * elements, elements, matched(node, given).steps + elements)


def among(_node: Node, given: list[Bound]) -> Bound:
    """A value of arrays whose elements are compared with each other."""
    return Bound(_characters(given), steps=_steps(given) + _pairs(given))


def some_elements(_node: Node, given: list[Bound]) -> Bound:
    """An array of elements that are there."""
    elements = sum(bound.elements for bound in given)
    return Bound(_characters(given), elements, _steps(given) + _pairs(given))


def glued(_node: Node, given: list[Bound]) -> Bound:
    """A text of all elements, with another text between them."""
    size = given[0].characters + given[0].elements * sum(bound.characters for bound in given[1:])
    return Bound(size, steps=_steps(given) + size)


def over(_node: Node, given: list[Bound]) -> Bound:
    """A lambda function (the second operand, with the bounds of one call) over all elements of an array."""
    elements, once = given[0].elements, given[1]
    most = max(elements, once.elements)
    return Bound(elements * once.characters, most, given[0].steps + elements * (once.steps + 1))


def kept(node: Node, given: list[Bound]) -> Bound:
    """The elements of an array for which a lambda function holds."""
    return Bound(given[0].characters, given[0].elements, over(node, given).steps)


def _steps(given: list[Bound]) -> int:
    return 1 + sum(bound.steps for bound in given)


def _characters(given: list[Bound]) -> int:
    return sum(bound.characters for bound in given)


def _pairs(given: list[Bound]) -> int:
    elements = sum(bound.elements for bound in given)
    return elements * elements + _characters(given)


def _search_steps(given: list[Bound]) -> int:
    within, wanted = given[0].characters, given[1].characters if len(given) > 1 else 1
    return within * (1 + wanted // _AT_ONCE)


def _pattern(node: Node) -> rule_patterns.Pattern:
    text = _text(node, 1, "the pattern")
    try:
        return rule_patterns.parse(text)
    except rule_patterns.PatternError as error:
        raise RefusedError(f"has the pattern {text!r}: {error}") from None


def _text(node: Node, index: int, name: str) -> str:
    given = node.children[index] if index < len(node.children) else None
    if given is None or given.kind != "Literal" or given.value is None:
        raise RefusedError(f"takes {name} from the record; write it as a text in the rule")
    return given.value


def _number(node: Node, index: int, name: str) -> int:
    given = _whole(node.children[index]) if index < len(node.children) else None
    if given is None:
        raise RefusedError(f"takes {name} from the record; write it as a whole number in the rule")
    return given


def _whole(node: Node) -> int | None:
    """The whole number that the node is, minus signs and widening casts apart."""
    if node.kind == "UnaryMinus":
        number = _whole(node.children[0])
        return None if number is None else -number
    try:
        return int(node.value or "") if node.kind == "Literal" else None
    except ValueError:
        return None


def check_size(bound: Bound, record_bytes: int) -> None:
    """Refuses what is too large, or takes too long.

    Raises:
        RefusedError: with both numbers.
    """
    shorter = f"of a record of {record_bytes:,} bytes; shorten the text first, as in left(field, 200)"
    if bound.characters > max(MOST_CHARACTERS, 4 * record_bytes):
        raise RefusedError(f"may make {bound.characters:,} characters {shorter}")
    if bound.steps > MOST_STEPS * max(1, record_bytes // 2**20):
        raise RefusedError(f"may take {bound.steps:,.0f} steps for a text {shorter}")
