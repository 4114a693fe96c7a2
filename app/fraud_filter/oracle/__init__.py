"""Decides by itself what should become of each payment: the audit's second opinion. Spark has no part in it.

What is common with the query is the payment schema and the reading of the rules file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from fraud_filter.model.saved import SavedModel
from fraud_filter.oracle.model import Score
from fraud_filter.oracle.payments import PaymentReader
from fraud_filter.oracle.predicates import Predicates
from fraud_filter.oracle.velocity import Velocity
from fraud_filter.rules.ruleset import RuleSet
from fraud_filter.schema import PaymentSchema

__all__ = ["Decision", "Oracle", "Place", "Predicates", "judge"]


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


def judge(read: Decision, rules: Predicates) -> Decision:
    """The decision on what `Oracle.read` gave: with the rules that match, or with a `failure`."""
    if read.reason is not None or read.failure:
        return read
    try:
        return read._replace(rules=rules.match(read.fields))
    except Exception as error:
        return _failed(error)


class Oracle:
    """Decides payments of one schema by one rules file.

    Raises:
        UsageError: a rule has an expression that the oracle does not know.
    """

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
        self._schema, self._features, self._most = schema, rules.features, velocity_payments
        self._velocity: dict[int, Velocity] = {}
        names = [field.name for field in schema.fields]
        self.key_at = names.index(rules.features[0].per) if rules.features else 0
        known = [field.name for field in rules.without_model().columns(schema).fields]
        self._score = Score(model, known) if model else None

    @property
    def remembers(self) -> bool:
        """Whether it computes features, so that it must read each payment."""
        return bool(self._features)

    def read(self, value: bytes | None, place: Place | None) -> Decision:
        """A record without the rules that match it, or with a `failure`.

        `place` is needed where there are features: records of a partition come in their order and without a gap.
        """
        try:
            reason, fields = self.reader.read(value)
            if reason is not None:
                return Decision(reason, (), ())
            truncated: tuple[str, ...] = ()
            if self._features and place:
                known, truncated = self._of(place.partition).see(place.offset, place.timestamp_ms, fields)
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

    def _of(self, partition: int) -> Velocity:
        if partition not in self._velocity:
            self._velocity[partition] = Velocity(self._features, self._schema, self._most)
        return self._velocity[partition]


def _failed(error: Exception) -> Decision:
    """Of an exception in one line."""
    return Decision(None, (), (), (), f"{type(error).__name__}: {error}".splitlines()[0])
