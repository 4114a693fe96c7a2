"""Made-up payments: records with a known share of fraud and of malformed ones, the same for a seed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fraud_filter.config import Settings
from fraud_filter.errors import UsageError
from fraud_filter.generator.population import BlockLists, Draw, build_population, draw_ordinary, make_fraud
from fraud_filter.generator.records import ByType, MadeRecords, Malformer
from fraud_filter.generator.schemes import CARDS, Schemes
from fraud_filter.generator.source import Batch, Pace, Source, encoded
from fraud_filter.rules.ruleset import load_rules
from fraud_filter.schema import PaymentSchema, load_schema

#: The fields that made-up payments carry, in the order of the JSON.
FIELDS = (
    "payment_id",
    "card_id",
    "amount",
    "currency",
    "merchant",
    "merchant_category",
    "country",
    "card_country",
    "created_at",
)
#: Payments drawn at once: enough for numpy to pay, few enough to hold up the sender for 0.7 ms only, as
#: measured. It is part of what a seed means: with another number the same seed gives other payments.
_BATCH = 200


@dataclass(frozen=True)
class Shares:
    """Shares, 0 to 1, of the payments that match a shipped rule, of the records that are no valid payment, and of the
    payments that are part of labelled fraud. Without the last nothing is labelled.

    Raises:
        UsageError: a share is out of range, or all together exceed 1.
    """

    flagged: float = 0.05
    malformed: float = 0.001
    fraud: float = 0

    def __post_init__(self) -> None:
        given = {"--flagged-share": self.flagged, "--malformed-share": self.malformed, "--fraud-share": self.fraud}
        for option, share in given.items():
            if not 0 <= share <= 1:
                raise UsageError(f"{option} {share:g} is not accepted: give a share from 0 to 1")
        if sum(given.values()) > 1:
            named = " with ".join(f"{option} {share:g}" for option, share in given.items() if share)
            raise UsageError(f"{named} is not accepted: together they exceed 1")


class MadePayments:
    """A source of made-up payments at a given pace; it never ends.

    The same seed gives the same payments, but for `created_at`, which is the time at which a payment is due
    (UTC, milliseconds; for gambling at night the night before it).
    """

    def __init__(
        self,
        schema: PaymentSchema,
        pace: Pace,
        *,
        seed: int,
        shares: Shares | None = None,
        blocked: BlockLists | None = None,
    ) -> None:
        """Draws the merchants and cards from `seed` (not negative).

        Without `blocked`, no payment is made for the rules that are block lists. What the schema requires beside FIELDS
        is made up by type.

        Raises:
            UsageError: the seed is negative.
        """
        if seed < 0:
            raise UsageError(f"--seed {seed} is not accepted: give a whole number, 0 or above")
        self._pace = pace
        self.seed = seed
        self._shares = shares or Shares()
        self._blocked = blocked or BlockLists()
        further = [field for field in schema.fields if field.required and field.name not in FIELDS]
        self._further = ByType(further) if further else None
        self._malformer = Malformer(schema, frozenset((*FIELDS, *(field.name for field in further))))
        self._population = build_population(seed, CARDS) if self._shares.fraud else build_population(seed)

    @classmethod
    def for_settings(cls, settings: Settings, pace: Pace, *, seed: int, shares: Shares | None = None) -> MadePayments:
        """With the payment schema and the block lists of the rules file that the settings name.

        Raises:
            UsageError: as above, or one of the files is wrong.
        """
        schema = load_schema(settings.payment_schema)
        blocked = BlockLists.of(load_rules(settings.rules, schema))
        return cls(schema, pace, seed=seed, shares=shares, blocked=blocked)

    def batches(self, start_ms: int) -> Iterator[Batch]:
        """See Source."""
        rng = np.random.default_rng([self.seed, 1])
        schemes = Schemes(self.seed, self._population) if self._shares.fraud else None
        for first in itertools.count(0, _BATCH):
            due_s = self._pace.due_s(first, _BATCH)
            yield self._batch(rng, due_s, start_ms, schemes)

    def _batch(
        self, rng: np.random.Generator, due_s: NDArray[np.float64], start_ms: int, schemes: Schemes | None
    ) -> Batch:
        share = rng.random(len(due_s))
        malformed = share < self._shares.malformed
        flagged = ~malformed & (share < self._shares.malformed + self._shares.flagged)
        draw = draw_ordinary(rng, self._population, start_ms + (due_s * 1000).astype(np.int64))
        make_fraud(rng, self._population, self._blocked, draw, flagged)
        labels = None
        if schemes:
            fraud = ~malformed & ~flagged & (share < self._shares.malformed + self._shares.flagged + self._shares.fraud)
            labels = schemes.apply(draw, due_s, fraud, ~(malformed | flagged | fraud))
        keys, values = self._encode(draw)
        if self._further:
            further = self._further.records(rng, draw.created_ms)
            values = [
                (value or b"")[:-1] + b"," + encoded(fields)[1:] for value, fields in zip(values, further, strict=True)
            ]
        for index in np.flatnonzero(malformed).tolist():
            values[index] = self._malformer.spoil(values[index] or b"", rng)
        return Batch(due_s, keys, values, flagged, malformed, labels)

    def _encode(self, draw: Draw) -> tuple[list[bytes | None], list[bytes | None]]:
        """Keys and JSON values. Fields that need escaping were escaped once, in the population."""
        people = self._population
        created = np.datetime_as_string(draw.created_ms.astype("datetime64[ms]"), unit="ms").astype(bytes).tolist()
        cards = [people.cards[card] for card in draw.card.tolist()]
        for index in np.flatnonzero(draw.blocked_card >= 0).tolist():
            cards[index] = self._blocked.cards[draw.blocked_card[index]]
        payments = [b"pay-%016x" % number for number in draw.number.tolist()]
        for index in np.flatnonzero(draw.blocked_payment >= 0).tolist():
            payments[index] = self._blocked.payments[draw.blocked_payment[index]]
        merchants = [people.merchants[merchant] for merchant in draw.merchant.tolist()]
        homes = [people.countries[country] for country in people.card_country[draw.card].tolist()]
        values: list[bytes | None] = [
            b'{"payment_id":"%b","card_id":"%b","amount":%.2f,%b,%b,"created_at":"%bZ"}' % fields
            for fields in zip(payments, cards, draw.amount.tolist(), merchants, homes, created, strict=True)
        ]
        keys: list[bytes | None] = list(cards)
        return keys, values


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
