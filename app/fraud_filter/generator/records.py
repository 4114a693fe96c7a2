"""Made-up records of any schema: by type alone, with a known share of malformed ones, the same for a seed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from fraud_filter.generator.by_type import ByType
from fraud_filter.generator.malformed import Malformer
from fraud_filter.generator.pace import Pace
from fraud_filter.generator.payments import FIELDS, MadePayments, Shares
from fraud_filter.generator.source import Batch, Source, encoded
from fraud_filter.schema import PaymentSchema, load_schema

#: Records drawn at once; part of what a seed means.
_BATCH = 200


def made_source(settings: Settings, pace: Pace, *, seed: int, shares: Shares) -> Source:
    """Payments where the schema is one of payments, records by type where it requires what no payment has.

    Raises:
        UsageError: the schema or the rules are wrong, a type can't be made up, or the seed is negative.
    """
    schema = load_schema(settings.payment_schema)
    names = {field.name for field in schema.fields}
    if names.issuperset(FIELDS) or set(schema.required).issubset(FIELDS):
        return MadePayments.for_settings(settings, pace, seed=seed, shares=shares)
    return MadeRecords(schema, pace, seed=seed, malformed=shares.malformed)


class MadeRecords:
    """A source of made-up records at a given pace; it never ends. Which of them match a rule is not known.

    The key is the first STRING field that is required; without one, records have none.
    """

    def __init__(self, schema: PaymentSchema, pace: Pace, *, seed: int, malformed: float) -> None:
        """Takes the share of `malformed` records, 0 to 1.

        Raises:
            UsageError: the seed is negative.
        """
        if seed < 0:
            raise UsageError(f"--seed {seed} is not accepted: give a whole number, 0 or above")
        self._pace = pace
        self.seed = seed
        self._malformed = malformed
        self._fields = ByType(schema.fields)
        self._malformer = Malformer(schema, frozenset(field.name for field in schema.fields))
        texts = (field.name for field in schema.fields if field.required and field.type == "STRING")
        self._key = next(texts, None)

    def batches(self, start_ms: int) -> Iterator[Batch]:
        """See Source."""
        rng = np.random.default_rng([self.seed, 2])
        for first in itertools.count(0, _BATCH):
            due_s = self._pace.due_s(first, _BATCH)
            malformed = rng.random(len(due_s)) < self._malformed
            records = self._fields.records(rng, start_ms + (due_s * 1000).astype(np.int64))
            keys = [None if self._key is None else record[self._key].encode() for record in records]
            values: list[bytes | None] = [encoded(record) for record in records]
            for index in np.flatnonzero(malformed).tolist():
                values[index] = self._malformer.spoil(values[index] or b"", rng)
            yield Batch(due_s, keys, values, None, malformed)
