"""Translates a rule's Spark SQL predicate into DuckDB's SQL, for the expressions on which the two were seen to agree.

sqlglot parses, types and writes; `rewrites` changes what DuckDB would take for something else; all the rest is
refused: an audit must not guess. `tests/embedded/test_oracle_spark.py` compares each expression with Spark 4.3.
"""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from fraud_filter.oracle.operands import UntranslatableError, require_alike, type_name
from fraud_filter.oracle.rewrites import REWRITES
from fraud_filter.schema import PaymentSchema

#: Name of the table of payments in the translated predicate.
TABLE = "payments"

#: Spark casts what these compare in ways of its own, so the operands must be of one kind.
_ALIKE = (
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In),
    *(exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least),
)
#: Same meaning in both, as sqlglot writes it.
_SAME = (
    *(exp.Paren, exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Is, exp.Var, exp.Interval),
    *(*_ALIKE, exp.Div, exp.IsNan, exp.Escape),
    *(exp.Upper, exp.Lower, exp.Length, exp.Trim, exp.StartsWith, exp.EndsWith, exp.Contains),
    *(exp.Replace, exp.Reverse, exp.Pad, exp.TsOrDsToDate, exp.Date, exp.DateDiff),
    *(exp.Hour, exp.Minute, exp.Second, exp.Day, exp.DayOfMonth, exp.DayOfYear, exp.Month, exp.Quarter, exp.Year),
    *(exp.WeekOfYear,),
)


class _SparkFour(Spark):
    """Spark 4 reads a doubled quote inside a string as one quote; sqlglot's dialect does not yet."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012 - as sqlglot declares it


def to_duckdb(predicate: str, schema: PaymentSchema) -> str:
    """The predicate as a DuckDB expression over a table `payments` with the fields of the schema.

    Raises:
        UntranslatableError: it does not parse, or has a part on which DuckDB is not known to agree with Spark.
    """
    columns = {
        field.name.lower(): field.type.replace("TIMESTAMP_NTZ", "TIMESTAMP").replace("TIMESTAMP", "TIMESTAMPNTZ")
        for field in schema.fields
    }
    try:
        parsed: Any = sqlglot.parse_one(predicate, dialect=_SparkFour)
        _check_columns(parsed, columns)
        _widen_literals(parsed)
        query = exp.select(exp.alias_(parsed, "matched")).from_(TABLE)
        query = qualify(query, schema={TABLE: columns}, dialect="spark")
        typed = annotate_types(query, schema={TABLE: columns}, dialect="spark").expressions[0].this
        return _rewrite(typed).sql(dialect="duckdb", unsupported_level=ErrorLevel.RAISE)
    except SqlglotError as error:
        raise UntranslatableError(str(error).splitlines()[0]) from None


def _check_columns(parsed: exp.Expression, known: dict[str, str]) -> None:
    for column in parsed.find_all(exp.Column):
        if column.table or column.name.lower() not in known:
            raise UntranslatableError(f"unknown column {column.sql(dialect='spark')}")


def _widen_literals(parsed: exp.Expression) -> None:
    """A whole number that is too large for INT is a BIGINT in Spark; sqlglot takes each for INT."""
    for literal in list(parsed.find_all(exp.Literal)):
        if not literal.is_string and literal.name.isdigit() and int(literal.name) >= 2**31:
            literal.replace(exp.cast(literal.copy(), exp.DataType.Type.BIGINT))


def _rewrite(node: exp.Expression) -> exp.Expression:
    """Children first. A node keeps the type that sqlglot found, so that its parent can look at it."""
    kind = node.type
    rewrite = REWRITES.get(type(node))
    if rewrite is None and not isinstance(node, _SAME):
        name = node.name if isinstance(node, exp.Anonymous) else type(node).__name__
        raise UntranslatableError(f"{name!r} is not among the expressions that the audit can evaluate")
    for child in list(node.iter_expressions()):
        if not isinstance(child, exp.DataType):
            child.replace(_rewrite(child))
    if isinstance(node, _ALIKE):
        require_alike(node)
    result = rewrite(node) if rewrite else node
    if type_name(result) == "UNKNOWN":
        result.type = kind
    return result
