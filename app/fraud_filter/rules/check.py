"""Asks Spark's own parser and analyzer whether each predicate can run in every mode, and refuses the rest in words.

A predicate must be a deterministic expression of one payment. Continuous mode refuses `current_timestamp()` and
`current_date()` (Spark guide, "Structured Streaming Programming Guide", Continuous Processing), and a rule that
depends on the time of evaluation can't be audited in any mode. It must also answer every record, within bounds:
`rule_functions` lists what it may be made of, and `rule_bounds` reckons what it may cost.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from fraud_filter.errors import UsageError
from fraud_filter.rules import functions
from fraud_filter.rules.bounds import PartRefusedError, check_bounds
from fraud_filter.rules.ruleset import Rule, RuleSet
from fraud_filter.rules.syntax import place, size_flaw
from fraud_filter.rules.tree import Node, path, read_tree
from fraud_filter.schema import PaymentSchema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A time written out: the parser reads `timestamp 'now'` as the time of the query's start, also when it is spelt with
#: escapes.
_TIME_LITERAL = re.compile(r"""\w+\s*(['"])[+-]?\d[\w :.+/-]*\1""")

#: What Spark's messages begin with.
_ERROR_CLASS = re.compile(r"^\s*\[[A-Z_.0-9]+\]\s*")
#: A value of each type, as text.
_SAMPLE = "'1'"
_SAMPLES = {"DATE": "'2026-01-31'", **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_NTZ"), "'2026-01-31 12:00:00'")}


def check_rules(spark: SparkSession, rules: RuleSet, schema: PaymentSchema, record_bytes: int) -> None:
    """Checks every predicate against the payment schema, and tries them on a payment.

    Args:
        record_bytes: the largest record that rules see (setting max_record_bytes).

    Raises:
        UsageError: rules are refused; a line for each, with rule, reason, and line and column inside the predicate.
    """
    refused = find_refused(spark, rules, schema, record_bytes)
    if refused:
        raise UsageError("\n".join(str(rules.refuse(rule, reason)) for rule, reason in refused.items()))


def find_refused(spark: SparkSession, rules: RuleSet, schema: PaymentSchema, record_bytes: int) -> dict[Rule, str]:
    """The rules that are refused, with the reason, in their order; see `check_rules`."""
    checker = _Checker(spark, rules.columns(schema), record_bytes)
    refused = {}
    for rule in rules.rules:
        if rule.when is not None:
            try:
                checker.check(rule.when)
            except UsageError as error:
                refused[rule] = str(error)
    rest = [rule for rule in rules.rules if rule.when is not None and rule not in refused]
    return refused | checker.find_failing(rest)


class _Checker:
    """Spark's parser and analyzer, for payments of a schema; what is known of a function is asked once."""

    def __init__(self, spark: Any, schema: PaymentSchema, record_bytes: int) -> None:
        self._state = spark._jsparkSession.sessionState()
        self._identifier = spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
        self._payments = spark.createDataFrame([], schema.ddl)
        kinds = ((field.name, exp.DataType.build(field.type, dialect="spark")) for field in schema.fields)
        columns = (f"{_sample(kind)} AS `{name}`" for name, kind in kinds)
        # Of values alone, so that no job runs: Spark evaluates such a query while it plans.
        self._payment = spark.sql(f"SELECT {', '.join(columns)} FROM VALUES (0)")  # noqa: S608 - a checked schema
        self._record_bytes = record_bytes
        self._known: dict[str, str | None] = {}

    def check(self, when: str) -> None:
        """Raises a UsageError, whose text is the reason, when the predicate is refused."""
        from py4j.protocol import Py4JError
        from pyspark.errors import AnalysisException, ParseException, PySparkException
        from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

        if flaw := size_flaw(when):
            raise UsageError(flaw)
        try:
            parsed = self._state.sqlParser().parseExpression(when)
            self._check_parsed(when, parsed)
            resolved = self._payments.select(F.expr(when))._jdf.queryExecution().analyzed().expressions().head()
        except ParseException as error:
            raise UsageError(_parse_reason(str(error))) from None
        except AnalysisException as error:
            raise UsageError(_analysis_reason(when, error)) from None
        except (Py4JError, PySparkException, RecursionError) as error:
            raise UsageError(f"{when[:80]!r} can't be analysed: {_first_line(error)}") from None
        self._check_resolved(when, resolved)
        kind = resolved.dataType().simpleString()
        if kind != "boolean":
            raise UsageError(f"{when!r} is of type {kind}; a predicate is true or false, such as `amount > 100`")

    def find_failing(self, rules: Sequence[Rule]) -> dict[Rule, str]:
        """Rules that Spark can't plan, or that fail on a payment, as patterns do that Java does not know."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

        predicates = [F.expr(rule.when).alias(f"_{at}") for at, rule in enumerate(rules) if rule.when]
        try:
            self._payments.select(*predicates)._jdf.queryExecution().optimizedPlan()
            self._payment.select(*predicates).collect()
        except (Py4JError, PySparkException) as error:
            if len(rules) == 1:
                return {rules[0]: f"{rules[0].when!r} fails on a record: {_first_line(error)}"}
            half = len(rules) // 2
            return self.find_failing(rules[:half]) | self.find_failing(rules[half:])
        return {}

    def _check_parsed(self, when: str, parsed: Any) -> None:
        """Refuses names before Spark resolves them: to resolve a function can mean to evaluate its operands."""
        tree = read_tree(parsed)
        if tree.kind == "Alias":
            raise UsageError(f"{_at(when, parsed, 0)}: not allowed in a rule: {functions.REFUSED['UnresolvedAlias']}")
        for node in tree.walk():
            reason = self._parsed_reason(when, parsed, node)
            if reason is not None:
                what = f"function {'.'.join(node.names)!r} is " if node.kind == "UnresolvedFunction" else ""
                raise UsageError(f"{_at(when, parsed, node.at)}: {what}not allowed in a rule: {reason}")

    def _parsed_reason(self, when: str, parsed: Any, node: Node) -> str | None:
        if node.kind == "UnresolvedFunction":
            if len(node.names) > 1:
                return "write the function's name alone"
            (name,) = node.names
            if name not in self._known:
                self._known[name] = self._function_reason(name)
            return self._known[name]
        if node.kind == "Literal" and node.type.startswith(("date", "timestamp")):
            origin = path(parsed, node.at)[0].origin()
            start, stop = origin.startIndex(), origin.stopIndex()
            text = when[start.get() : stop.get() + 1] if start.isDefined() and stop.isDefined() else ""
            return None if _TIME_LITERAL.fullmatch(text) else "write the time out, as in timestamp'2026-01-31 12:00:00'"
        if node.kind in functions.NAMES or node.kind in functions.TAKEN:
            return None
        return functions.REFUSED.get(node.kind, functions.OTHERWISE)

    def _function_reason(self, name: str) -> str | None:
        """Why a function is refused by its name; None also for unknown ones, of which the analyzer tells."""
        from pyspark.errors import AnalysisException

        try:
            info = self._state.catalog().lookupFunctionInfo(self._identifier(name))
        except AnalysisException:
            return None
        if info.getSource() == "python_udf":
            return functions.REFUSED["PythonUDF"]
        kind = info.getClassName().rpartition(".")[2]
        if kind in functions.TAKEN or kind in functions.BUILDERS:
            return None
        return functions.REFUSED.get(kind) or functions.GROUPS.get(info.getGroup()) or functions.OTHERWISE

    def _check_resolved(self, when: str, resolved: Any) -> None:
        try:
            check_bounds(read_tree(resolved), self._record_bytes)
        except PartRefusedError as error:
            name = path(resolved, error.at)[0].prettyName()
            raise UsageError(f"{_at(when, resolved, error.at)}: {name!r} is not allowed in a rule: {error}") from None


def _sample(kind: Any) -> str:
    """A value of the type, in SQL."""
    if kind.is_type("struct"):
        parts = (
            f"{exp.Literal.string(one.name).sql('spark')}, {_sample(one.args['kind'])}" for one in kind.expressions
        )
        return f"named_struct({', '.join(parts)})"
    if kind.is_type("array", "map"):
        return f"{kind.this.name.lower()}({', '.join(map(_sample, kind.expressions))})"
    text = kind.sql("spark")
    return f"CAST({_SAMPLES.get(text, _SAMPLE)} AS {text})"


def _at(when: str, expression: Any, at: int) -> str:
    """Where a part stands in the predicate: what Spark has put in has the place of what it stands for."""
    origin = next((node.origin() for node in path(expression, at) if node.origin().line().isDefined()), None)
    if origin is None:
        return f"in {when!r}"
    line, column = origin.line().get(), origin.startPosition().get() + 1
    return f"line {line}, column {column} of {when!r}"


def _first_line(error: Exception) -> str:
    from py4j.protocol import Py4JJavaError

    said = str(error.java_exception.toString()) if isinstance(error, Py4JJavaError) else str(error)
    return _ERROR_CLASS.sub("", (said.strip().splitlines() or ["?"])[0])


def _parse_reason(message: str) -> str:
    position = re.search(r"== SQL \(line (\d+), position (\d+)\)|\(line (\d+), pos (\d+)\)", message)
    where = ""
    if position:  # the second form counts columns from 0
        line, column = (position[1], position[2]) if position[1] else (position[3], str(int(position[4]) + 1))
        where = f"line {line}, column {column}: "
    return f"{where}not a Spark SQL predicate: {_bare(message)}"


def _analysis_reason(when: str, error: Any) -> str:
    contexts, reason = error.getQueryContext(), _bare(str(error))
    return f"{place(when, contexts[0].startIndex())}: {reason}" if contexts else f"{reason} in {when!r}"


def _bare(message: str) -> str:
    """The first line, without the class of the error and its SQLSTATE."""
    first = _ERROR_CLASS.sub("", message.strip()).splitlines()[0]
    return re.sub(r"\s*SQLSTATE: \w+.*$", "", first)
