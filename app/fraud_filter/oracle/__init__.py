"""Decides by itself what should become of each payment: the audit's second opinion. Spark has no part in it.

Payments are read by Python, rules are evaluated by DuckDB; what is common with the query is the payment schema and
the loading of the rules file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from fraud_filter.oracle.payments import PaymentReader
from fraud_filter.oracle.predicates import Predicates
from fraud_filter.rules.ruleset import RuleSet
from fraud_filter.schema import PaymentSchema

__all__ = ["Decision", "Oracle"]


class Decision(NamedTuple):
    """What should become of one record: rejected for `reason`, or flagged by `rules`, or neither.

    `fields` are the payment's, in the order of the schema (empty when rejected).
    """

    reason: str | None
    rules: tuple[str, ...]
    fields: tuple[Any, ...]


class Oracle:
    """Decides payments of one schema by one rules file.

    Raises:
        UsageError: the schema has a type, or a rule has an expression, that the oracle does not know.
    """

    def __init__(self, schema: PaymentSchema, rules: RuleSet) -> None:
        self.reader = PaymentReader(schema)
        self._predicates = Predicates(rules, schema, self.reader.readers)

    def decide(self, values: Sequence[bytes | None]) -> list[Decision]:
        """One decision a record, in order. Best given some ten thousand values at once.

        Args:
            values: the records' values.

        Raises:
            FraudFilterError: a rule can't be evaluated over these payments.
        """
        readings = [self.reader.read(value) for value in values]
        matches = iter(self._predicates.matches([fields for reason, fields in readings if reason is None]))
        return [
            Decision(reason, (), ()) if reason is not None else Decision(None, next(matches), fields)
            for reason, fields in readings
        ]
