"""The cards and merchants of made-up payments, and the payments, ordinary and fraudulent, that are drawn of them."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
from faker import Faker
from numpy.typing import NDArray

from fraud_filter.rules.ruleset import RuleSet

#: country -> (currency, Faker's locale for merchant names, share of cards). The currencies are of like value,
#: so that one limit on the amount fits all of them.
COUNTRIES = {
    "DE": ("EUR", "de_DE", 20),
    "FR": ("EUR", "fr_FR", 15),
    "GB": ("GBP", "en_GB", 14),
    "IT": ("EUR", "it_IT", 11),
    "ES": ("EUR", "es_ES", 10),
    "NL": ("EUR", "nl_NL", 7),
    "PL": ("PLN", "pl_PL", 6),
    "US": ("USD", "en_US", 5),
    "AT": ("EUR", "de_AT", 4),
    "CH": ("CHF", "de_CH", 3),
    "PT": ("EUR", "pt_PT", 3),
    "IE": ("EUR", "en_IE", 2),
}


@dataclass(frozen=True)
class Category:
    """What is bought: share of all payments, median amount, and sigma of the logarithm of the amount."""

    name: str
    share: float
    median: float
    sigma: float


CASH = "cash_withdrawal"

GAMBLING = "gambling"

CATEGORIES = (
    Category("grocery", 26, 28, 0.8),
    Category("restaurant", 17, 24, 0.7),
    Category("online_retail", 15, 45, 0.9),
    Category("transport", 11, 12, 0.9),
    Category("fuel", 8, 55, 0.4),
    Category(CASH, 6, 110, 0.6),
    Category("pharmacy", 5, 17, 0.6),
    Category("clothing", 4, 60, 0.7),
    Category("entertainment", 3, 25, 0.6),
    Category("electronics", 2, 180, 1.0),
    Category("travel", 1.6, 320, 0.9),
    Category(GAMBLING, 1.4, 40, 0.8),
)

_NAMES = [category.name for category in CATEGORIES]

CASH_INDEX, GAMBLING_INDEX = _NAMES.index(CASH), _NAMES.index(GAMBLING)

_SHARES = np.array([category.share for category in CATEGORIES])

#: How the payments spread over CATEGORIES; they add up to 1.
CATEGORY_SHARES: NDArray[np.float64] = _SHARES / _SHARES.sum()

#: Merchants in each category of each country.
MERCHANTS = 8

#: Merchants that a card goes back to again and again.
FAVOURITES = 6


@dataclass(frozen=True)
class Population:
    """Merchants and cards; `merchant_index` says where a merchant stands.

    Attributes:
        merchants: JSON members currency, merchant, merchant_category, country of each merchant.
        countries: JSON member card_country of each country.
        cards: id of each card, which is also the record's key.
        card_country: index of the country that issued each card.
        card_spending: how much more than the usual each card spends (a factor).
        card_favourites: merchant indexes, one row for each card.
        activity: cumulative share of the payments that each card makes, ending with 1.
    """

    merchants: tuple[bytes, ...]
    countries: tuple[bytes, ...]
    cards: tuple[bytes, ...]
    card_country: NDArray[np.int64]
    card_spending: NDArray[np.float64]
    card_favourites: NDArray[np.int64]
    activity: NDArray[np.float64]


def build_population(seed: int, cards: int = 10_000) -> Population:
    """Draws the merchants and `cards` cards. The same seed gives the same population."""
    rng = np.random.default_rng([seed, 0])
    shares = np.array([share for _, _, share in COUNTRIES.values()], dtype=np.float64)
    card_country = rng.choice(len(COUNTRIES), size=cards, p=shares / shares.sum())
    # Activity is skewed (a tenth of the cards make a third of the payments), yet no card is so busy that its
    # partition gets visibly more than the others.
    activity = np.cumsum(rng.lognormal(0, 0.8, cards))
    favourites = merchant_index(
        card_country[:, np.newaxis],
        rng.choice(len(CATEGORIES), size=(cards, FAVOURITES), p=CATEGORY_SHARES),
        rng.integers(MERCHANTS, size=(cards, FAVOURITES)),
    )
    return Population(
        merchants=_merchants(seed),
        countries=tuple(f'"card_country":"{country}"'.encode() for country in COUNTRIES),
        cards=tuple(b"card-%06d" % number for number in range(1, cards + 1)),
        card_country=card_country,
        card_spending=rng.lognormal(0, 0.35, cards),
        card_favourites=favourites,
        activity=activity / activity[-1],
    )


def merchant_index(
    country: NDArray[np.int64], category: NDArray[np.int64] | int, number: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The index in `Population.merchants` of merchant `number` of that category in that country."""
    return (country * len(CATEGORIES) + category) * MERCHANTS + number


def _merchants(seed: int) -> tuple[bytes, ...]:
    members: list[bytes] = []
    for country, (currency, locale, _) in COUNTRIES.items():
        fake = Faker(locale)
        fake.seed_instance(f"{seed}-{country}")
        for provider in fake.get_providers():
            if isinstance(getattr(provider, "cities", None), list):  # Italy's come out of a set, in no fixed order
                provider.cities = sorted(provider.cities)
        for category in CATEGORIES:
            for _ in range(MERCHANTS):
                name = f"ATM {fake.city()}" if category.name == CASH else fake.company()
                fields = {
                    "currency": currency,
                    "merchant": name,
                    "merchant_category": category.name,
                    "country": country,
                }
                members.append(json.dumps(fields, ensure_ascii=False, separators=(",", ":"))[1:-1].encode())
    return tuple(members)


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
