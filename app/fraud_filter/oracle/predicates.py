"""Evaluates all rules of a rules file over a batch of payments at once, in DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from fraud_filter.oracle.fields import FieldReader
from fraud_filter.oracle.operands import UntranslatableError
from fraud_filter.oracle.translate import TABLE, to_duckdb
from fraud_filter.rules.ruleset import Rule, RuleSet
from fraud_filter.schema import PaymentSchema


class Predicates:
    """The rules, translated once. Not for several threads.

    Raises:
        UsageError: a rule has no known equal in DuckDB; names the rule and the part.
    """

    def __init__(self, rules: RuleSet, schema: PaymentSchema, readers: Sequence[FieldReader]) -> None:
        self._names = tuple(rule.name for rule in rules.rules)
        self._arrow = pa.schema([(reader.field.name, reader.arrow_type) for reader in readers])
        self._known: dict[bytes, tuple[str, ...]] = {}
        self._database = _connect()
        self._lists: list[tuple[int, int, frozenset[str]]] = []
        columns = [self._column(at, rule, rules, schema) for at, rule in enumerate(rules.rules)]
        self._query = f"SELECT {', '.join(columns)} FROM {TABLE}"  # noqa: S608 - written by the translator

    def matches(self, payments: Sequence[tuple[Any, ...]]) -> list[tuple[str, ...]]:
        """For each payment the names of the rules that match it, in the order of the rules file.

        Args:
            payments: fields in the order of the schema, as the field readers give them.

        Raises:
            Exception: of any kind: DuckDB can't evaluate a rule over these payments, or a value fits no column.
        """
        if not payments:
            return []
        columns = list(zip(*payments, strict=True))
        found = self._evaluate(columns)
        for rule_at, field_at, ids in self._lists:
            # Whose text is the same for Spark and Python: a text, or an integer.
            found[:, rule_at] = [value is not None and str(value) in ids for value in columns[field_at]]
        return [self._named(row) for row in found]

    def _evaluate(self, columns: list[tuple[Any, ...]]) -> Any:
        arrays = [pa.array(column, type=field.type) for column, field in zip(columns, self._arrow, strict=True)]
        return np.column_stack(self._select(self._query, pa.Table.from_arrays(arrays, schema=self._arrow)))

    def _select(self, query: str, payments: pa.Table) -> list[Any]:
        """The columns of a query over a table of payments."""
        self._database.register(TABLE, payments)
        try:
            found = list(self._database.execute(query).fetchnumpy().values())
        except duckdb.Error:
            self._database = _connect()  # some errors leave a database that answers nothing more
            raise
        self._database.unregister(TABLE)
        return found

    def _named(self, row: Any) -> tuple[str, ...]:
        pattern = row.tobytes()
        names = self._known.get(pattern)
        if names is None:
            names = tuple(name for name, matched in zip(self._names, row, strict=True) if matched)
            self._known[pattern] = names
        return names

    def _column(self, at: int, rule: Rule, rules: RuleSet, schema: PaymentSchema) -> str:
        if rule.when is None:
            field_at = next(at for at, field in enumerate(schema.fields) if field.name == rule.column)
            self._lists.append((at, field_at, frozenset(rule.ids)))
            return f"false AS r{at}"
        try:
            condition = to_duckdb(rule.when, schema)
            # DuckDB's own refusals should come before the first payment is read
            self._select(f"SELECT ({condition})::BOOLEAN FROM {TABLE}", self._arrow.empty_table())  # noqa: S608
        except (UntranslatableError, duckdb.Error) as error:
            raise rules.refuse(rule, f"the audit can't evaluate {rule.when!r}: {_first_line(error)}") from None
        return f"coalesce(TRY(({condition})::BOOLEAN), false) AS r{at}"


def _connect() -> Any:
    database = duckdb.connect()
    # small batches: threads cost more than they bring; a division by zero gives null, as in Spark
    database.execute("SET threads = 1; SET TimeZone = 'UTC'; SET ieee_floating_point_ops = false")
    return database


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
