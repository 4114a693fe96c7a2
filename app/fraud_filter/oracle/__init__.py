"""Decides by itself what should become of each payment: the audit's second opinion. Spark has no part in it.

Payments are read by Python, rules are evaluated by DuckDB; what is common with the query is the payment schema and
the loading of the rules file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fraud_filter.model.saved import SavedModel
from fraud_filter.oracle.fields import field_reader
from fraud_filter.oracle.model import Score
from fraud_filter.oracle.payments import PaymentReader
from fraud_filter.oracle.predicates import Predicates
from fraud_filter.oracle.velocity import Velocity
from fraud_filter.rules.ruleset import RuleSet
from fraud_filter.schema import PaymentSchema

__all__ = ["Decision", "Judge", "Oracle", "Place", "Read"]


class Place(NamedTuple):
    """Where a record lies in the input topic, and its append time in milliseconds since 1970."""

    partition: int
    offset: int
    timestamp_ms: int


class Decision(NamedTuple):
    """What should become of one record: rejected for `reason`, or flagged by `rules`, or neither.

    `fields` are the payment's, in the order of the schema, then its features and its score (empty when rejected).
    `truncated` are the features whose window may be cut short.
    """

    reason: str | None
    rules: tuple[str, ...]
    fields: tuple[Any, ...]
    truncated: tuple[str, ...] = ()


class Read(NamedTuple):
    """One record as it was read: why it must be rejected, or its fields with features; as `Decision` has them."""

    reason: str | None
    fields: tuple[Any, ...]
    truncated: tuple[str, ...] = ()


class Judge:
    """Decides by one set of rules what was read."""

    def __init__(self, predicates: Predicates) -> None:
        self._predicates = predicates

    def judge(self, reads: Sequence[Read]) -> list[Decision]:
        """One decision a record, in order.

        Raises:
            FraudFilterError: a rule can't be evaluated over these payments.
        """
        matches = iter(self._predicates.matches([one.fields for one in reads if one.reason is None]))
        return [
            Decision(one.reason, (), ())
            if one.reason is not None
            else Decision(None, next(matches), one.fields, one.truncated)
            for one in reads
        ]


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
        empty_at: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        """`velocity_payments` of a key are remembered for features (the setting); `model` is that of the rules.

        `empty_at`: the offsets at which the filter's state began empty, in their order, by partition.
        """
        self.reader = PaymentReader(schema)
        columns = rules.columns(schema)
        own = {field.name for field in schema.fields}
        self.flagged_reader = PaymentReader(columns, [f.name for f in columns.fields if f.name not in own])
        self._schema, self._features, self._most = schema, rules.features, velocity_payments
        self._velocity: dict[int, Velocity] = {}
        self._empty_at = {number: deque(offsets) for number, offsets in (empty_at or {}).items()}
        names = [field.name for field in schema.fields]
        self.key_at = names.index(rules.features[0].per) if rules.features else 0
        self._judge = self.sharing(rules)
        known = [field.name for field in rules.without_model().columns(schema).fields]
        self._score = Score(model, known) if model else None

    @property
    def remembers(self) -> bool:
        """Whether it computes features, so that it must read each payment."""
        return bool(self._features)

    def sharing(self, rules: RuleSet) -> Judge:
        """Decides by other rules with the same features and model what `read` gives.

        Raises:
            UsageError: a rule has an expression that the oracle does not know.
        """
        columns = rules.columns(self._schema)
        readers = (*self.reader.readers, *map(field_reader, columns.fields[len(self._schema.fields) :]))
        return Judge(Predicates(rules, columns, readers))

    def decide(self, values: Sequence[bytes | None], places: Sequence[Place] = ()) -> list[Decision]:
        """One decision a record, in order. Best given some ten thousand values at once.

        Args:
            values: the records' values.
            places: where they lie, those of a partition in their order and without a gap since the last call. Needed
                where the rules have features.

        Raises:
            FraudFilterError: a rule can't be evaluated over these payments.
        """
        return self._judge.judge(self.read(values, places))

    def read(self, values: Sequence[bytes | None], places: Sequence[Place] = ()) -> list[Read]:
        """The records without a decision; arguments as of `decide`."""
        readings = [self.reader.read(value) for value in values]
        fields = [reading.fields for reading in readings]
        truncated: list[tuple[str, ...]] = [()] * len(readings)
        if self._features:
            for at, (reading, place) in enumerate(zip(readings, places, strict=True)):
                if reading.reason is None:
                    known = self._of(place.partition, place.offset).see(
                        place.offset, place.timestamp_ms, reading.fields
                    )
                    fields[at], truncated[at] = (*reading.fields, *known.values), known.truncated
        if self._score:
            fields = [(*own, self._score.of(own)) if own else own for own in fields]
        return [Read(reason, own, cut) for (reason, _), own, cut in zip(readings, fields, truncated, strict=True)]

    def forget(self, partitions: Iterable[int]) -> None:
        """Lets go of what is remembered of partitions of which no more records come."""
        for partition in partitions:
            self._velocity.pop(partition, None)

    def _of(self, partition: int, offset: int) -> Velocity:
        empty_at = self._empty_at.get(partition)
        while empty_at and empty_at[0] <= offset:
            empty_at.popleft()
            self._velocity.pop(partition, None)
        if partition not in self._velocity:
            self._velocity[partition] = Velocity(self._features, self._schema, self._most)
        return self._velocity[partition]
