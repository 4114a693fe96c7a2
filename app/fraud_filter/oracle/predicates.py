"""Evaluates predicates over payments: what each word of the language means, in Python.

The words are those of `rules.words` and the signs of `rules.language`; what Spark makes of them is written there.
Values are as the field readers give them. None is null, and what has a None among its operands is None, but for the
words that say otherwise.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from operator import itemgetter
from typing import Any

from fraud_filter.rules.language import Node, digits
from fraud_filter.rules.words import EXISTS, FUNCTIONS, whole
from fraud_filter.schema import DAY_US

_Row = Sequence[Any]
#: What gives a value for the fields of a payment.
Evaluated = Callable[[_Row], Any]

#: Wide enough for each product and quotient of decimals of 38 digits.
_EXACT = Context(prec=160)


def evaluator(node: Node, places: Mapping[str, int], elements: Mapping[str, list[Any]] | None = None) -> Evaluated:
    """What gives the value of a part of a predicate for the fields of a payment.

    Args:
        places: of the columns among the fields.
        elements: by the name of a variable, the list that holds its value.
    """
    elements = elements or {}
    if node.word == "column":
        return itemgetter(places[node.value])
    if node.word == "literal":
        value = node.value
        return lambda _: value
    if node.word == "variable":
        held = elements[node.value]
        return lambda _: held[0]
    if node.word == EXISTS:
        held = [None]
        array = evaluator(node.parts[0], places, elements)
        return _over(array, held, evaluator(node.parts[1], places, {**elements, node.value: held}))
    parts = [evaluator(part, places, elements) for part in node.parts]
    if node.word in _OF_ALL:
        known = _OF_ALL[node.word]
        return lambda row: known([part(row) for part in parts])
    evaluate = _meaning(node)
    if len(parts) == 2:
        first, second = parts
        return lambda row: None if (one := first(row)) is None or (two := second(row)) is None else evaluate(one, two)
    return lambda row: None if None in (values := [part(row) for part in parts]) else evaluate(*values)


def _meaning(node: Node) -> Callable[..., Any]:
    """What a part makes of the values of its parts, none of which is null."""
    kind, word = node.type, node.word
    if word in _SIGNS:
        return _arithmetic(word, kind)
    if word in _COMPARING:
        compare = _COMPARING[word]
        return (lambda *both: compare(*map(ordered, both))) if node.parts[0].type == "DOUBLE" else compare
    if word == "cast":
        return _cast(node.parts[0].kind, kind)
    if word in ("field", "element"):
        return _part(node)
    if word in ("neg", "abs"):
        evaluate = operator.neg if word == "neg" else abs
        return _whole(evaluate) if kind == "BIGINT" else evaluate
    if word in ("like", "rlike"):
        pattern = re.compile(node.value, re.DOTALL if word == "like" else 0)
        found = pattern.fullmatch if word == "like" else pattern.search
        return lambda text: found(text) is not None
    meaning: Callable[..., Any] = operator.not_ if word == "not" else FUNCTIONS[word].meaning
    return meaning


def _over(array: Evaluated, held: list[Any], inner: Evaluated) -> Evaluated:
    """exists()."""

    def evaluate(row: _Row) -> bool | None:
        values = array(row)
        return None if values is None else _or([inner(row) for held[0] in values])

    return evaluate


# -- null has a meaning


def _and(values: list[Any]) -> bool | None:
    return False if False in values else None if None in values else True


def _or(values: list[Any]) -> bool | None:
    return True if True in values else None if None in values else False


def _case(values: list[Any]) -> Any:
    half = len(values) // 2
    other = values[-1] if len(values) % 2 else None
    return next((value for when, value in zip(values[:half], values[half:], strict=False) if when), other)


def _in(values: list[Any]) -> bool | None:
    first, *listed = map(ordered, values)
    return None if first is None else first in listed or (None if None in listed else False)


def ordered(value: Any) -> Any:
    """The order that Spark gives to values: NaN is greater than any number."""
    return (value != value, 0.0 if value != value else value) if isinstance(value, float) else value


_OF_ALL: dict[str, Callable[[list[Any]], Any]] = {
    "and": _and, "or": _or, "case": _case, "in": _in,
    "coalesce": lambda values: next((value for value in values if value is not None), None),
    "is null": lambda values: values[0] is None,
    "size": lambda values: -1 if values[0] is None else len(values[0]),
    "isnan": lambda values: values[0] is not None and values[0] != values[0],
    "<=>": lambda values: ordered(values[0]) == ordered(values[1]),
}  # fmt: skip
_COMPARING = {"=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
              ">=": operator.ge}  # fmt: skip


# -- numbers


def _whole(evaluate: Callable[..., int]) -> Callable[..., int]:
    """A BIGINT, which goes round at its limits."""
    return lambda *values: (evaluate(*values) + 2**63) % 2**64 - 2**63


def _remainder(one: int, two: int) -> int:
    """With the sign of the first."""
    rest = abs(one) % abs(two)
    return -rest if one < 0 else rest


_SIGNS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]] = {
    "+": (_whole(operator.add), operator.add, _EXACT.add),
    "-": (_whole(operator.sub), operator.sub, _EXACT.subtract),
    "*": (_whole(operator.mul), operator.mul, _EXACT.multiply),
    "/": (operator.truediv, operator.truediv, _EXACT.divide),
    "%": (_remainder, lambda one, two: math.nan if math.isinf(one) else math.fmod(one, two), _EXACT.remainder),
}


def _arithmetic(sign: str, kind: str) -> Callable[..., Any]:
    of_whole, of_double, of_decimal = _SIGNS[sign]
    evaluate = {"BIGINT": of_whole, "DOUBLE": of_double}.get(kind, of_decimal)
    return (lambda one, two: evaluate(one, two) if two else None) if sign in ("/", "%") else evaluate


def _at_scale(value: Decimal, scale: int) -> Decimal:
    return value.quantize(Decimal((0, (1,), -scale)), ROUND_HALF_UP, _EXACT)


def _cast(source: str, target: str) -> Callable[[Any], Any]:
    if source == "DATE":
        return lambda days: days * DAY_US
    if target == "BIGINT":
        return whole(math.trunc) if source == "DOUBLE" else _whole(int)
    if not target.startswith("DECIMAL"):
        return {"DOUBLE": float, "STRING": str}.get(target, lambda us: us)
    precision, scale = digits(target)

    def fitting(value: Any) -> Decimal | None:
        rounded = _at_scale(Decimal(value), scale)
        return rounded if abs(rounded) < Decimal((0, (1,), precision - scale)) else None

    return fitting


# -- nested values


def _part(node: Node) -> Callable[[Any], Any]:
    """Of a STRUCT a dict, of an ARRAY a list, of a MAP a list of pairs."""
    key = node.value
    if node.word == "field":
        return lambda values: values.get(key)
    if node.parts[0].kind == "ARRAY":
        return lambda values: values[key] if key < len(values) else None
    return lambda pairs: next((value for name, value in pairs if name == key), None)
