"""The audit's oracle with the rules that it decides by, for tests that want decisions alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from fraud_filter.oracle import Decision, Oracle, Place, Predicates
from fraud_filter.rules.ruleset import RuleSet
from fraud_filter.schema import PaymentSchema


class Decider(Oracle):
    """Decides payments of one schema by one rules file."""

    def __init__(self, schema: PaymentSchema, rules: RuleSet, velocity_payments: int = 0) -> None:
        super().__init__(schema, rules, velocity_payments)
        self._predicates = Predicates(rules, schema)

    def decide(self, values: Sequence[bytes | None], places: Sequence[Place] = ()) -> list[Decision]:
        """One decision a record, in order; places are needed where the rules have features."""
        pairs = zip_longest(values, places)
        return [self._predicates.judge(self.read(value, place)) for value, place in pairs]
