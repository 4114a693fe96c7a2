"""Decides by itself what should become of each payment: the audit's second opinion. Spark has no part in it.

What is common with the query is the payment schema and the reading of the rules file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from fraud_filter.model.saved import SavedModel
from fraud_filter.oracle.model import Score
from fraud_filter.oracle.payments import PaymentReader
from fraud_filter.oracle.predicates import Evaluated, evaluator
from fraud_filter.oracle.velocity import Velocity
from fraud_filter.rules.language import LanguageError, read_predicate
from fraud_filter.rules.ruleset import Rule, RuleSet
from fraud_filter.schema import PaymentSchema


class Place(NamedTuple):
    """Where a record lies in the input topic, and its append time in milliseconds since 1970."""

    partition: int
    offset: int
    timestamp_ms: int


class Decision(NamedTuple):
    """What should become of one record: rejected for `reason`, or flagged by `rules`, or neither.

    `fields` are the payment's, in the order of the schema, then its features and its score (empty when rejected).
    `truncated` are the features whose window may be cut short. `failure` says why the record can't be judged, whatever
    the reason: all else is empty then.
    """

    reason: str | None
    rules: tuple[str, ...]
    fields: tuple[Any, ...]
    truncated: tuple[str, ...] = ()
    failure: str = ""


class Predicates:
    """The rules of a file, read once.

    Raises:
        UsageError: a rule is none of the language; names the rule and the part.
    """

    def __init__(self, rules: RuleSet, schema: PaymentSchema) -> None:
        columns = rules.columns(schema)
        places = {field.name: at for at, field in enumerate(columns.fields)}
        self._rules = [(rule.name, _reading(rule, rules, columns, places)) for rule in rules.rules]

    def judge(self, read: Decision) -> Decision:
        """The decision on what `Oracle.read` gave: with the rules that match, or with a `failure`."""
        if read.reason is not None or read.failure:
            return read
        try:
            return read._replace(rules=tuple(name for name, holds in self._rules if holds(read.fields)))
        except Exception as error:
            return _failed(error)


def _reading(rule: Rule, rules: RuleSet, columns: PaymentSchema, places: Mapping[str, int]) -> Evaluated:
    if rule.when is None:
        at, ids = places[str(rule.column)], frozenset(rule.ids)
        # Whose text is the same for Spark and Python: a text, or an integer.
        return lambda row: row[at] is not None and str(row[at]) in ids
    try:
        return evaluator(read_predicate(rule.when, columns), places)
    except LanguageError as error:
        raise rules.refuse(rule, f"the audit can't evaluate {rule.when!r}: {error}") from None


class Oracle:
    """Reads payments of one schema, with the features and the score that the rules of a file use."""

    def __init__(
        self,
        schema: PaymentSchema,
        rules: RuleSet,
        velocity_payments: int = 0,
        model: SavedModel | None = None,
    ) -> None:
        """`velocity_payments` of a key are remembered for features (the setting); `model` is that of the rules."""
        self.reader = PaymentReader(schema)
        columns = rules.columns(schema)
        own = {field.name for field in schema.fields}
        self.flagged_reader = PaymentReader(columns, [f.name for f in columns.fields if f.name not in own])
        #: Whether it computes features, so that it must read each payment.
        self.remembers = bool(rules.features)
        self._velocity = defaultdict[int, Velocity](partial(Velocity, rules.features, schema, velocity_payments))
        names = [field.name for field in schema.fields]
        self.key_at = names.index(rules.features[0].per) if rules.features else 0
        known = [field.name for field in rules.without_model().columns(schema).fields]
        self._score = Score(model, known) if model else None

    def read(self, value: bytes | None, place: Place | None) -> Decision:
        """A record without the rules that match it, or with a `failure`.

        `place` is needed where there are features: records of a partition come in their order and without a gap.
        """
        try:
            reason, fields = self.reader.read(value)
            if reason is not None:
                return Decision(reason, (), ())
            truncated: tuple[str, ...] = ()
            if self.remembers and place:
                known, truncated = self._velocity[place.partition].see(place.offset, place.timestamp_ms, fields)
                fields = (*fields, *known)
            return Decision(None, (), (*fields, self._score.of(fields)) if self._score else fields, truncated)
        except Exception as error:
            return _failed(error)

    def key(self, value: bytes | None) -> Any:
        """The key of a payment's features; None where it has none, is rejected or can't be read."""
        try:
            reason, fields = self.reader.read(value)
        except Exception:
            return None
        return fields[self.key_at] if reason is None else None

    def forget(self, partitions: Iterable[int]) -> None:
        """Lets go of what is remembered of partitions of which no more records come."""
        for partition in partitions:
            self._velocity.pop(partition, None)


def _failed(error: Exception) -> Decision:
    """Of an exception in one line."""
    return Decision(None, (), (), (), f"{type(error).__name__}: {error}".splitlines()[0])
