"""A rule's expression as Spark resolved it, read in one call: walking it in Java would take a call for each step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Node:
    """One Catalyst expression.

    `at` is its place among all nodes, parents before children; `kind` the name of its class; `value` what a literal
    holds, as text (None is null); `type` the data type of a literal, a column or a cast; `names` a function's name and
    what stands before it; `identity` tells variables apart.
    """

    at: int
    kind: str
    value: str | None = None
    type: str = ""
    names: tuple[str, ...] = ()
    identity: str = ""
    children: list[Node] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        """This node and all below it, parents before children."""
        yield self
        for child in self.children:
            yield from child.walk()


def read_tree(expression: Any) -> Node:
    """The tree of a Java expression."""
    listed = iter(enumerate(json.loads(expression.toJSON())))
    return _next(listed)


def path(expression: Any, at: int) -> list[Any]:
    """The Java expression at a place of the tree, and those that it is part of, from the inside out."""
    return next(way for place, way in enumerate(_ways(expression, [])) if place == at)


def _next(listed: Iterator[tuple[int, dict[str, Any]]]) -> Node:
    at, told = next(listed)
    kind = told["class"].rpartition(".")[2]
    value, names = told.get("value"), str(told.get("nameParts", "[]"))
    return Node(
        at,
        kind,
        value=value if kind == "Literal" else None,
        type=told["dataType"] if isinstance(told.get("dataType"), str) else "complex",
        names=tuple(names[1:-1].split(", ")),
        identity=str(told.get("exprId", told.get("id", ""))),
        children=[_next(listed) for _ in range(told["num-children"])],
    )


def _ways(expression: Any, above: list[Any]) -> Iterator[list[Any]]:
    way = [expression, *above]
    yield way
    children = expression.children()
    for index in range(children.size()):
        yield from _ways(children.apply(index), way)
