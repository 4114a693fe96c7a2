"""Asks Spark's own parser and analyzer whether each predicate can run in every mode, and refuses the rest in words.

A predicate must be a deterministic expression of one payment. Continuous mode refuses `current_timestamp()` and
`current_date()` (Spark guide, "Structured Streaming Programming Guide", Continuous Processing), and a rule that
depends on the time of evaluation can't be audited in any mode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fraud_filter.errors import UsageError
from fraud_filter.rules import RuleSet
from fraud_filter.schema import PaymentSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Function groups of Spark's registry (ExpressionInfo.getGroup) that need more than one payment.
_REFUSED_GROUPS = {
    "agg_funcs": "an aggregate needs many payments",
    "window_funcs": "a window function needs many payments",
    "generator_funcs": "it makes several rows of one payment",
}
_REFUSED_NODES = {
    "ScalarSubquery": "a subquery reads more than the payment",
    "Exists": "a subquery reads more than the payment",
    "ListQuery": "a subquery reads more than the payment",
    "InSubquery": "a subquery reads more than the payment",
    "LateralSubquery": "a subquery reads more than the payment",
    "FunctionTableSubqueryArgumentExpression": "a subquery reads more than the payment",
    "WindowExpression": "a window needs many payments",
    "UnresolvedWindowExpression": "a window needs many payments",
    "PythonUDF": "a Python function would run once a record",
    "PythonUDAF": "a Python function would run once a record",
    "UnresolvedStar": "name the column",
    "Alias": "a predicate has no name of its own",
    "RaiseError": "it would stop the query on a record",
}
#: Grouping functions that Spark files under date and time.
_REFUSED_FUNCTIONS = {"window", "session_window", "window_time"}
_CLOCK_NODES = {"CurrentDate", "CurrentTimestamp", "Now", "LocalTimestamp", "CurrentTime"}
_CLOCK_REASON = "it depends on the time of evaluation; use the payment's own time, such as created_at"


def check_rules(spark: SparkSession, rules: RuleSet, schema: PaymentSchema) -> None:
    """Checks every predicate against the payment schema.

    Raises:
        UsageError: the first rule that is refused, with rule, reason, and line and column inside the predicate.
    """
    payments = spark.createDataFrame([], schema.ddl)
    for rule in rules.rules:
        if rule.when is not None:
            try:
                _check(spark, payments, rule.when)
            except UsageError as error:
                raise rules.refuse(rule, str(error)) from None


def _check(spark: SparkSession, payments: DataFrame, when: str) -> None:
    from pyspark.errors import AnalysisException, ParseException
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    try:
        session: Any = spark._jsparkSession
        parsed = session.sessionState().sqlParser().parseExpression(when)
        _check_parsed(spark, when, parsed)
        plan = payments.select(F.expr(when))._jdf.queryExecution().analyzed()
    except ParseException as error:
        raise UsageError(_parse_reason(str(error))) from None
    except AnalysisException as error:
        raise UsageError(_analysis_reason(when, error)) from None
    resolved = plan.expressions().head()
    _check_resolved(when, resolved)
    kind = resolved.dataType().simpleString()
    if kind != "boolean":
        raise UsageError(f"{when!r} is of type {kind}; a predicate is true or false, such as `amount > 100`")


def _check_parsed(spark: Any, when: str, parsed: Any) -> None:
    """Refuses what is visible before names are resolved: afterwards aggregates and windows change the plan."""
    for node in _tree(parsed):
        kind = node.getClass().getSimpleName()
        if kind in _REFUSED_NODES:
            raise UsageError(f"{_at(when, node)}: not allowed in a rule: {_REFUSED_NODES[kind]}")
        if kind == "UnresolvedFunction":
            name = node.nameParts().mkString(".")
            info = _function_info(spark, name)
            group = "window_funcs" if name.lower() in _REFUSED_FUNCTIONS else info.getGroup() if info else ""
            if group in _REFUSED_GROUPS:
                raise UsageError(
                    f"{_at(when, node)}: function {name!r} is not allowed in a rule: {_REFUSED_GROUPS[group]}"
                )


def _check_resolved(when: str, resolved: Any) -> None:
    offender = None
    for node in _tree(resolved):
        kind = node.getClass().getSimpleName()
        reason = _CLOCK_REASON if kind in _CLOCK_NODES else _REFUSED_NODES.get(kind)
        if reason and kind != "Alias":  # the analyzer names the column of the result
            raise UsageError(f"{_at(when, node)}: {node.prettyName()!r} is not allowed in a rule: {reason}")
        if not node.deterministic():
            offender = node  # a node is as non-deterministic as its children: the deepest one is the cause
    if offender is not None:
        raise UsageError(
            f"{_at(when, offender)}: {offender.prettyName()!r} is not allowed in a rule: it is not deterministic, "
            "so the same payment could be decided in two ways"
        )


def _tree(expression: Any) -> Iterator[Any]:
    """The nodes of a Catalyst expression, parents before children."""
    yield expression
    children = expression.children()
    for index in range(children.size()):
        yield from _tree(children.apply(index))


def _function_info(spark: Any, name: str) -> Any:
    """Spark's description of a built-in or registered function; None when unknown (the analyzer then says so)."""
    from pyspark.errors import AnalysisException

    identifier = spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name)
    try:
        return spark._jsparkSession.sessionState().catalog().lookupFunctionInfo(identifier)
    except AnalysisException:
        return None


def _at(when: str, node: Any) -> str:
    origin = node.origin()
    if not origin.line().isDefined():
        return f"in {when!r}"
    line, column = origin.line().get(), origin.startPosition().get() + 1
    return f"line {line}, column {column} of {when!r}"


def _parse_reason(message: str) -> str:
    first = re.sub(r"^\s*\[[A-Z_.0-9]+\]\s*", "", message.strip()).splitlines()
    position = re.search(r"== SQL \(line (\d+), position (\d+)\)|\(line (\d+), pos (\d+)\)", message)
    where = ""
    if position:  # the second form counts columns from 0
        line, column = (position[1], position[2]) if position[1] else (position[3], str(int(position[4]) + 1))
        where = f"line {line}, column {column}: "
    reason = re.sub(r"\s*SQLSTATE: \w+.*$", "", first[0])
    return f"{where}not a Spark SQL predicate: {reason}"


def _analysis_reason(when: str, error: Any) -> str:
    message = re.sub(r"^\s*\[[A-Z_.0-9]+\]\s*", "", str(error).strip()).splitlines()[0]
    reason = re.sub(r"\s*SQLSTATE: \w+.*$", "", message)
    contexts = error.getQueryContext()
    if not contexts:
        return f"{reason} in {when!r}"
    start = contexts[0].startIndex()
    line = when.count("\n", 0, start) + 1
    column = start - (when.rfind("\n", 0, start) + 1) + 1
    return f"line {line}, column {column} of {when!r}: {reason}"
