"""Draws payments from a population: ordinary ones match no shipped rule, flagged ones match at least one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fraud_filter.generator.population import (
    CASH_INDEX,
    CATEGORIES,
    CATEGORY_SHARES,
    GAMBLING_INDEX,
    MERCHANTS,
    Population,
    merchant_index,
)
from fraud_filter.rules.ruleset import RuleSet

_DAY_MS = 24 * 3600 * 1000
_NIGHT_MS = 5 * 3600 * 1000  # of night-gambling: from midnight to five, UTC

#: The limits of the shipped rules (`app/rules.yml`) that ordinary payments stay below; a test compares both.
_LARGE, _FOREIGN_CASH, _GAMBLING = 5000.0, 300.0, 200.0

#: Shares of ordinary payments that are made at a card's favourite merchants, and abroad.
_AT_FAVOURITES, _ABROAD = 0.6, 0.05

_MEDIAN = np.array([category.median for category in CATEGORIES])
_SIGMA = np.array([category.sigma for category in CATEGORIES])

#: Kinds of fraud by the rule they are made for, and how frequent each is among the flagged payments.
_FRAUD = {
    "large-amount": 0.3,
    "foreign-cash": 0.3,
    "night-gambling": 0.15,
    "stolen-card": 0.1,
    "invalid-amount": 0.1,
    "blocked-payment": 0.05,
}


@dataclass(frozen=True)
class BlockLists:
    """The ids of the rules file's block lists in UTF-8; a kind of fraud whose list is empty is not made."""

    payments: tuple[bytes, ...] = ()
    cards: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, rules: RuleSet) -> BlockLists:
        """Collects the lists on `payment_id` and `card_id`."""
        return cls(
            payments=tuple(id_.encode() for rule in rules.rules if rule.column == "payment_id" for id_ in rule.ids),
            cards=tuple(id_.encode() for rule in rules.rules if rule.column == "card_id" for id_ in rule.ids),
        )


@dataclass
class Draw:
    """Payments as columns. `blocked_payment` and `blocked_card` index a block list; -1 is none."""

    number: NDArray[np.uint64]
    card: NDArray[np.int64]
    merchant: NDArray[np.int64]
    amount: NDArray[np.float64]
    created_ms: NDArray[np.int64]
    blocked_payment: NDArray[np.int64]
    blocked_card: NDArray[np.int64]


def draw_ordinary(rng: np.random.Generator, population: Population, created_ms: NDArray[np.int64]) -> Draw:
    """Draws a payment for each time in `created_ms` (ms since 1970); none of them matches a shipped rule."""
    count = len(created_ms)
    card = np.searchsorted(population.activity, rng.random(count))
    home = population.card_country[card]
    favourite = population.card_favourites[card, rng.integers(population.card_favourites.shape[1], size=count)]
    country = np.where(rng.random(count) < _ABROAD, population.card_country[rng.permutation(card)], home)
    category = rng.choice(len(CATEGORIES), size=count, p=CATEGORY_SHARES)
    elsewhere = merchant_index(country, category, rng.integers(MERCHANTS, size=count))
    merchant = np.where((rng.random(count) < _AT_FAVOURITES) & (country == home), favourite, elsewhere)
    country, category = merchant // (len(CATEGORIES) * MERCHANTS), merchant // MERCHANTS % len(CATEGORIES)

    amount = _MEDIAN[category] * np.exp(rng.normal(size=count) * _SIGMA[category]) * population.card_spending[card]
    cash = category == CASH_INDEX
    amount = np.where(cash, 10 * np.ceil(amount / 10), np.maximum(np.round(amount, 2), 0.5))
    spread = rng.random(count)  # where an amount would match a rule, it is drawn again, below the limit
    amount = np.where(amount >= _LARGE, np.round((0.1 + 0.8 * spread) * _LARGE, 2), amount)
    amount = np.where((category == GAMBLING_INDEX) & (amount > _GAMBLING), np.ceil(spread * _GAMBLING), amount)
    foreign_cash = cash & (country != home) & (amount >= _FOREIGN_CASH)
    amount = np.where(foreign_cash, 10 * np.ceil((0.05 + 0.9 * spread) * _FOREIGN_CASH / 10), amount)
    nothing = np.full(count, -1)
    return Draw(
        number=rng.integers(2**64, size=count, dtype=np.uint64),
        card=card,
        merchant=merchant,
        amount=amount,
        created_ms=created_ms.copy(),
        blocked_payment=nothing,
        blocked_card=nothing.copy(),
    )


def make_fraud(
    rng: np.random.Generator,
    population: Population,
    blocked: BlockLists,
    draw: Draw,
    chosen: NDArray[np.bool_],
) -> None:
    """Changes the `chosen` payments of `draw` so that each matches at least one shipped rule."""
    weights = dict(_FRAUD)
    if not blocked.payments:
        del weights["blocked-payment"]
    if not blocked.cards:
        del weights["stolen-card"]
    share = np.array(list(weights.values()))
    kind = np.full(len(chosen), -1)
    kind[chosen] = rng.choice(len(share), size=int(chosen.sum()), p=share / share.sum())
    index = {name: np.flatnonzero(kind == number) for number, name in enumerate(weights)}

    large = index["large-amount"]
    draw.amount[large] = np.round(np.minimum(_LARGE + 2000 * rng.pareto(2.5, len(large)), 60_000), 2)

    cash = index["foreign-cash"]
    abroad = _another_country(rng, population, population.card_country[draw.card[cash]])
    draw.merchant[cash] = merchant_index(abroad, CASH_INDEX, rng.integers(MERCHANTS, size=len(cash)))
    draw.amount[cash] = 10.0 * rng.integers(int(_FOREIGN_CASH) // 10, 150, size=len(cash))

    night = index["night-gambling"]
    country = population.card_country[draw.card[night]]
    draw.merchant[night] = merchant_index(country, GAMBLING_INDEX, rng.integers(MERCHANTS, size=len(night)))
    draw.amount[night] = np.round(rng.uniform(_GAMBLING + 1, 3000, len(night)), 2)
    draw.created_ms[night] = _last_night(draw.created_ms[night], rng.integers(_NIGHT_MS, size=len(night)))

    invalid = index["invalid-amount"]
    draw.amount[invalid] = 0.0 - np.round(rng.uniform(0, 500, len(invalid)) * rng.integers(2, size=len(invalid)), 2)

    marked = index.get("blocked-payment", np.empty(0, np.int64))
    draw.blocked_payment[marked] = rng.integers(max(len(blocked.payments), 1), size=len(marked))
    stolen = index.get("stolen-card", np.empty(0, np.int64))
    draw.blocked_card[stolen] = rng.integers(max(len(blocked.cards), 1), size=len(stolen))


def _another_country(rng: np.random.Generator, population: Population, home: NDArray[np.int64]) -> NDArray[np.int64]:
    countries = len(population.countries)
    return (home + rng.integers(1, countries, size=len(home))) % countries


def _last_night(created_ms: NDArray[np.int64], since_midnight_ms: NDArray[np.int64]) -> NDArray[np.int64]:
    """That time of the night of the same day, or of the day before where it would lie in the future."""
    night = created_ms // _DAY_MS * _DAY_MS + since_midnight_ms
    return np.where(night > created_ms, night - _DAY_MS, night)
