"""The kinds of a predicate's operands, and pieces of DuckDB SQL made of them (see `translate` and `rewrites`)."""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp

from fraud_filter.oracle.fields import WHOLE
from fraud_filter.oracle.times import DAY_US, date_days, timestamp_us

TIMES = ("TIMESTAMP", "TIMESTAMPNTZ", "TIMESTAMPTZ", "TIMESTAMPLTZ")
_FAMILIES = {
    **dict.fromkeys((*WHOLE, "FLOAT", "DOUBLE", "DECIMAL"), "number"),
    **dict.fromkeys(("TEXT", "VARCHAR"), "text"),
    **dict.fromkeys((*TIMES, "DATE"), "time"),
    "BOOLEAN": "boolean",
    "INTERVAL": "interval",
}


class UntranslatableError(ValueError):
    """The predicate has no known equal in DuckDB; the message names the part."""


def type_name(node: Any) -> str:
    """The type that sqlglot found for an expression, such as INT; UNKNOWN when it found none."""
    return node.type.this.name if isinstance(node, exp.Expression) and node.type else "UNKNOWN"


def family(node: Any) -> str:
    """The kind of an operand: number, text, time, boolean, interval or unknown."""
    return _FAMILIES.get(type_name(node), "unknown")


def require_alike(node: exp.Expression) -> None:
    """Refuses operands of different kinds, except text compared with a time: it is read as Spark reads it."""
    operands = _operands(node)
    families = {family(operand) for operand in operands if type_name(operand) != "NULL"}
    if families == {"time", "text"} and isinstance(node, exp.Binary | exp.Between):  # the others compare as text
        days_only = all(type_name(operand) == "DATE" for operand in operands if family(operand) == "time")
        for operand in operands:
            if family(operand) == "text":
                operand.replace(time_literal(operand, days_only))
    elif len(families) > 1 or "unknown" in families:
        kinds = " and ".join(sorted(families))
        raise refusal(node, f"mixes {kinds}; write a CAST, so that both sides are of one kind")


def _operands(node: exp.Expression) -> list[exp.Expression]:
    if isinstance(node, exp.Between):
        return [node.this, node.args["low"], node.args["high"]]
    if isinstance(node, exp.Case):
        found = [branch.args["true"] for branch in node.args["ifs"]] + [node.args.get("default")]
        return [operand for operand in found if operand is not None]
    if isinstance(node, exp.If):
        return [operand for operand in (node.args["true"], node.args.get("false")) if operand is not None]
    if isinstance(node, exp.In | exp.Coalesce | exp.Greatest | exp.Least):
        return [node.this, *node.expressions]
    return [node.this, node.expression]


def time_literal(node: exp.Expression, days_only: bool) -> exp.Expression:
    """A text as the TIMESTAMP (or DATE) that Spark reads from it.

    Raises:
        UntranslatableError: it is not written out in the predicate, or is no time in ISO 8601.
    """
    if not (isinstance(node, exp.Literal) and node.is_string):
        raise refusal(node, "is text beside a time; write a CAST")
    try:
        micros = date_days(node.name) * DAY_US if days_only else timestamp_us(node.name)
    except ValueError:
        raise refusal(node, "is no time in ISO 8601, such as 2026-03-01 or 2026-03-01T12:00:00Z") from None
    return typed("DATE" if days_only else "TIMESTAMP", f"MAKE_TIMESTAMP({micros})")


def refusal(node: exp.Expression, reason: str) -> UntranslatableError:
    """The error that quotes a part of the predicate and says what is wrong with it."""
    return UntranslatableError(f"{node.sql(dialect='spark')!r} {reason}")


def duckdb(template: str, **nodes: exp.Expression) -> exp.Expression:
    """A piece of DuckDB SQL in which `:x` stands for the expression given as `x`."""
    piece = sqlglot.parse_one(f"({template})", dialect="duckdb")
    return piece.transform(
        lambda node: nodes[node.name].copy() if isinstance(node, exp.Placeholder) and node.name in nodes else node
    )


def typed(kind: str, template: str, **nodes: exp.Expression) -> exp.Expression:
    """As `_duckdb`, cast to a type."""
    piece = duckdb(f"CAST({template} AS {kind})", **nodes)
    piece.type = exp.DataType.build(kind)
    return piece
