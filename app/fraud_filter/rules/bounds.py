"""Whether an analysed rule is made of what answers every record alone, within bounds. Asks Spark nothing."""

from __future__ import annotations

import re

from fraud_filter.rules import cost as rule_cost
from fraud_filter.rules import functions
from fraud_filter.rules.cost import Bound, RefusedError
from fraud_filter.rules.tree import Node

_TIMES = ("date", "timestamp", "timestamp_ntz")
#: A date may be too far away for a timestamp, which ends the query.
_DATES = {"ParseToDate", "TruncDate", "DateAdd", "DateSub", "DateFromUnixDate"}
_TO_TIMES = {"ParseToDate", "ParseToTimestamp", "UnixTimestamp", "ToUnixTimestamp"}
#: Spark reads them as the time of the query's planning (SpecialDatetimeValues).
_CLOCK_TEXT = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)


class PartRefusedError(ValueError):
    """A part of a rule is not taken: `at` is its place in the tree."""

    def __init__(self, node: Node, reason: str) -> None:
        super().__init__(reason)
        self.at = node.at


def check_bounds(tree: Node, record_bytes: int) -> Bound:
    """The bounds of an analysed rule over records of at most `record_bytes`.

    Raises:
        PartRefusedError: it has a part that is not on the list, or a bound that is too high.
    """
    return _Walk(record_bytes).bound(tree)


class _Walk:
    """One walk through a rule; knows the variables of lambda functions, and expressions used several times."""

    def __init__(self, record_bytes: int) -> None:
        self._record_bytes = record_bytes
        self._variables: dict[str, Bound] = {}

    def bound(self, node: Node, tried: bool = False) -> Bound:
        """The bounds of a node; `tried` where an exception becomes null."""
        if node.kind == "Literal":
            return self._literal(node)
        if node.kind == "AttributeReference":
            return rule_cost.column(node, self._record_bytes)
        if node.kind in ("NamedLambdaVariable", "CommonExpressionRef"):
            return self._variables[node.identity]
        shape = rule_cost.value if tried and node.kind in functions.TRIED else functions.TAKEN.get(node.kind)
        if shape is None:
            raise PartRefusedError(node, functions.REFUSED.get(node.kind, functions.OTHERWISE))
        given = self._children(node, tried or node.kind == "TryEval")
        _check_cast(node)
        try:
            found = shape(node, given)
            rule_cost.check_size(found, self._record_bytes)
        except RefusedError as error:
            raise PartRefusedError(node, f"it {error}") from None
        return found

    def _literal(self, node: Node) -> Bound:
        if not node.type.startswith(functions.LITERALS) or "collate" in node.type:
            raise PartRefusedError(node, f"a literal of type {node.type} is not on the list")
        return rule_cost.literal(node)

    def _children(self, node: Node, tried: bool) -> list[Bound]:
        if node.kind == "With":  # what it defines comes last
            return [self.bound(child, tried) for child in reversed(node.children)]
        if node.kind == "CommonExpressionDef":
            self._variables[node.identity] = self.bound(node.children[0], tried)
            return [self._variables[node.identity]]
        given: list[Bound] = []
        for child in node.children:
            if child.kind == "LambdaFunction":
                body, element, *index = child.children
                self._variables[element.identity] = Bound(given[0].characters, given[0].elements)
                self._variables |= {variable.identity: rule_cost.column(variable, 0) for variable in index}
                given.append(self.bound(body, tried))
            else:
                given.append(self.bound(child, tried))
        return given


def _check_cast(node: Node) -> None:
    """Refuses types without an answer, and texts in the rule that Spark reads as the time of the query's planning."""
    if node.kind == "Cast" and not node.type.startswith(functions.CASTS):
        raise PartRefusedError(node, f"a conversion to {node.type} is not on the list")
    if node.kind not in _TO_TIMES and not (node.kind == "Cast" and node.type in _TIMES):
        return
    if (node.type.startswith("timestamp") or node.kind in _TO_TIMES - {"ParseToDate"}) and any(
        _is_date(part) for part in node.walk()
    ):
        raise PartRefusedError(node, "it makes a timestamp of a date, which may be too far away for one; compare dates")
    text = node.children[0]
    if text.kind == "Literal":
        if text.type == "string" and _CLOCK_TEXT.match(text.value or ""):
            raise PartRefusedError(node, f"{text.value!r} depends on the time of evaluation; write the time out")
    elif not any(part.kind in ("AttributeReference", "NamedLambdaVariable") for part in text.walk()) and not (
        text.kind == "Cast" and text.type in _TIMES
    ):
        raise PartRefusedError(node, "it makes a time of a text put together in the rule; write the time out")


def _is_date(node: Node) -> bool:
    return node.kind in _DATES or (node.kind in ("AttributeReference", "Cast") and node.type == "date")
