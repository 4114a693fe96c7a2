"""What DuckDB means differently from Spark SQL, and how it must be written to mean the same (see `translate`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from fraud_filter.oracle.fields import WHOLE
from fraud_filter.oracle.operands import (
    TIMES,
    UntranslatableError,
    duckdb,
    family,
    refusal,
    time_literal,
    type_name,
    typed,
)

_EXTRACTED = ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE")
#: What Java and RE2 read in two ways, or only one of them reads.
_JAVA_ONLY = re.compile(r"\[\[|&&|\(\?(?!:)|[*+?}]\+|\\[^dDwWsSbB.\\/()\[\]{}|^$*+?-]")
_TRUNCATED = (*_EXTRACTED, "WEEK", "SECOND")


def _wrapped(kind: str, template: str, **nodes: exp.Expression) -> exp.Expression:
    """Whole numbers overflow silently in Spark (ANSI off); DuckDB would widen the type or stop."""
    half, full = 2 ** (WHOLE[kind] - 1), 2 ** WHOLE[kind]
    return typed(kind, f"((({template}) + {half}) % {full} + {full}) % {full} - {half}", **nodes)


def _arithmetic(node: exp.Expression) -> exp.Expression:
    """Addition, subtraction and multiplication."""
    families, kind = (family(node.this), family(node.expression)), type_name(node)
    if families == ("time", "interval") and not isinstance(node, exp.Mul):
        node.type = exp.DataType.build("TIMESTAMP")
        return node
    if families != ("number", "number"):
        raise refusal(node, f"combines {families[0]} and {families[1]}")
    if kind in WHOLE:
        sign = "+" if isinstance(node, exp.Add) else "-" if isinstance(node, exp.Sub) else "*"
        huge = f"CAST(:a AS HUGEINT) {sign} CAST(:b AS HUGEINT)"
        return _wrapped(kind, huge, a=node.this, b=node.expression)
    if {type_name(node.this), type_name(node.expression)} <= {"FLOAT", *WHOLE}:  # FLOAT columns come as DOUBLE
        return typed("DOUBLE", "CAST(:x AS FLOAT)", x=node)
    return node


def _negation(node: exp.Neg) -> exp.Expression:
    if type_name(node) in WHOLE and not isinstance(node.this, exp.Literal):
        return _wrapped(type_name(node), "-CAST(:x AS HUGEINT)", x=node.this)
    return node


def _absolute(node: exp.Abs) -> exp.Expression:
    if type_name(node.this) in WHOLE:
        return _wrapped(type_name(node.this), "ABS(CAST(:x AS HUGEINT))", x=node.this)
    return node


def _remainder(node: exp.Expression) -> exp.Expression:
    """By zero is null in Spark."""
    if family(node.this) != "number" or family(node.expression) != "number":
        raise refusal(node, "needs numbers")
    if isinstance(node, exp.IntDiv):
        if not {type_name(node.this), type_name(node.expression)} <= set(WHOLE):
            raise refusal(node, "needs whole numbers")
        return _wrapped("BIGINT", "CAST(:a AS HUGEINT) // NULLIF(:b, 0)", a=node.this, b=node.expression)
    kinds = [type_name(node.this), type_name(node.expression)]
    if set(kinds) <= set(WHOLE):  # DuckDB stops at the least number by -1
        widest = max(kinds, key=lambda kind: WHOLE[kind])
        return typed(widest, "CAST(:a AS HUGEINT) % NULLIF(:b, 0)", a=node.this, b=node.expression)
    return duckdb(":a % NULLIF(:b, 0)", a=node.this, b=node.expression)


def _to_whole(kind: str, number: exp.Expression) -> exp.Expression:
    """A DOUBLE as a whole number: cut off, held within the type's range, and not-a-number is 0."""
    limit = 2 ** (WHOLE[kind] - 1)
    return typed(
        kind,
        f"CASE WHEN ISNAN(:x) THEN 0 WHEN :x >= {limit} THEN {limit - 1} WHEN :x <= {-limit} THEN {-limit} "
        "ELSE CAST(TRUNC(:x) AS HUGEINT) END",
        x=number,
    )


def _rounding(node: exp.Expression) -> exp.Expression:
    """round(), floor() and ceil()."""
    decimals = node.args.get("decimals")
    if decimals is not None and type_name(node.this) != "DECIMAL":
        raise refusal(node, "rounds a DOUBLE to digits, which Spark does in decimal arithmetic")
    if isinstance(node, exp.Floor | exp.Ceil) and type_name(node.this) in ("DOUBLE", "FLOAT"):
        return _to_whole("BIGINT", node)
    return node


def _cast(node: exp.Expression) -> exp.Expression:
    target, source = node.args["to"].this.name, type_name(node.this)
    if isinstance(node.this, exp.Literal) and node.this.is_string and target in (*TIMES, "DATE"):
        return time_literal(node.this, days_only=target == "DATE")
    if target in WHOLE and node.args.get("safe"):
        raise refusal(node, "is null where the number does not fit; write CAST, which cuts it")
    if target in WHOLE and source in ("DOUBLE", "FLOAT"):
        if WHOLE[target] >= WHOLE["INT"]:
            return _to_whole(target, node.this)
        return _wrapped(target, "CAST(:x AS HUGEINT)", x=_to_whole("INT", node.this))  # as Java does, in two steps
    if target in WHOLE and source in (*WHOLE, "DECIMAL"):
        return _wrapped(target, "CAST(TRUNC(:x) AS HUGEINT)", x=node.this)
    fits = (
        (target in WHOLE and source == "BOOLEAN")
        or (target == "DOUBLE" and family(node.this) == "number")
        or (target == "DECIMAL" and isinstance(node.this, exp.Literal))
        or (target == "DATE" and source in TIMES)
        or (target in TIMES and source == "DATE")
        or (target in ("TEXT", "VARCHAR") and (source in WHOLE or family(node.this) == "text"))
    )
    if not fits:
        raise refusal(node, f"casts {source} to {target}, which the audit can't evaluate")
    return node


def _like(node: exp.Expression) -> exp.Expression:
    """Spark's patterns have `\\` as their escape character, DuckDB's none."""
    if isinstance(node.parent, exp.Escape):
        return node
    return exp.Escape(this=node, expression=exp.Literal.string("\\"))


def _only_text(node: exp.Expression) -> exp.Expression:
    if any(family(child) != "text" for child in node.iter_expressions()):
        raise refusal(node, "joins what is not text; write a CAST")
    return node


def _part_of_text(node: exp.Expression) -> exp.Expression:
    """substring(), left() and right() with positions written as numbers from 1."""
    numbers = [child for name, child in node.args.items() if name != "this" and child is not None]
    if not all(isinstance(number, exp.Literal) and number.name.isdigit() for number in numbers):
        raise refusal(node, "needs positions written as numbers, from 1")
    if isinstance(node, exp.Substring) and node.args["start"].name == "0":
        node.set("start", exp.Literal.number(1))  # the same to Spark
    return node


def _position(node: exp.StrPosition) -> exp.Expression:
    if node.args.get("position") or node.args.get("occurrence"):
        raise refusal(node, "searches from a position")
    return node


def _pattern(node: exp.RegexpLike) -> exp.Expression:
    """Java's regular expressions and RE2's agree on the plain ones."""
    pattern = node.expression
    if not (isinstance(pattern, exp.Literal) and pattern.is_string) or _JAVA_ONLY.search(pattern.name):
        raise refusal(node, "needs a plain regular expression: no flags, look-around, POSIX or Unicode classes")
    return node


def _membership(node: exp.In) -> exp.Expression:
    if node.args.get("query") or node.args.get("unnest"):
        raise refusal(node, "reads more than the record")
    return node


def _logic(node: exp.Expression) -> exp.Expression:
    if any(type_name(child) not in ("BOOLEAN", "NULL") for child in node.iter_expressions()):
        raise refusal(node, "joins what is not a condition")
    return node


def _calendar(node: exp.Extract | exp.TimestampTrunc) -> exp.Expression:
    """extract() and date_trunc()."""
    part, allowed = (node.args["unit"], _TRUNCATED) if isinstance(node, exp.TimestampTrunc) else (node.this, _EXTRACTED)
    if part.name.upper() not in allowed:
        raise refusal(node, f"is known to the audit for {', '.join(allowed)} only")
    if isinstance(node, exp.TimestampTrunc):
        node.type = exp.DataType.build("TIMESTAMP")
    return node


def _since_epoch(per_second: int) -> Callable[[Any], exp.Expression]:
    def rewrite(node: Any) -> exp.Expression:
        if family(node.this) != "time":
            raise refusal(node, "needs a TIMESTAMP")
        micros = 1_000_000 // per_second
        return typed("BIGINT", f"FLOOR(EPOCH_US(:x) / {micros})", x=node.this)

    return rewrite


def _anonymous(node: exp.Anonymous) -> exp.Expression:
    arguments, name = node.expressions, node.name.lower()
    if name in ("isnull", "isnotnull") and len(arguments) == 1:
        piece = duckdb(":x IS NULL" if name == "isnull" else ":x IS NOT NULL", x=arguments[0])
        piece.type = exp.DataType.build("BOOLEAN")
        return piece
    if name == "weekday" and len(arguments) == 1:
        return typed("INT", "ISODOW(:x) - 1", x=arguments[0])
    raise UntranslatableError(f"{node.name!r} is not among the functions that the audit can evaluate")


REWRITES: dict[type[exp.Expression], Callable[[Any], exp.Expression]] = {
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), _arithmetic),
    **dict.fromkeys((exp.Mod, exp.IntDiv), _remainder),
    **dict.fromkeys((exp.Round, exp.Floor, exp.Ceil), _rounding),
    **dict.fromkeys((exp.Cast, exp.TryCast), _cast),
    **dict.fromkeys((exp.Like, exp.ILike), _like),
    **dict.fromkeys((exp.Concat, exp.DPipe, exp.ConcatWs), _only_text),
    **dict.fromkeys((exp.Substring, exp.Left, exp.Right), _part_of_text),
    **dict.fromkeys((exp.And, exp.Or, exp.Not), _logic),
    **dict.fromkeys((exp.StrToUnix, exp.TimeToUnix, exp.UnixSeconds), _since_epoch(1)),
    exp.UnixMillis: _since_epoch(1000),
    exp.Neg: _negation,
    exp.Abs: _absolute,
    exp.StrPosition: _position,
    exp.RegexpLike: _pattern,
    exp.In: _membership,
    exp.DayOfWeek: lambda node: typed("INT", ":x + 1", x=node),  # Sunday is 1 in Spark, 0 in DuckDB
    **dict.fromkeys((exp.Extract, exp.TimestampTrunc), _calendar),
    exp.Anonymous: _anonymous,
}
