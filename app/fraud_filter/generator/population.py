"""The people and shops that made-up payments come from: merchants by country and category, cards with habits.

Everything is drawn once from a seed; `draw` only picks from it. Fields that always go together (a merchant's
name, category, country and currency) are kept as one piece of JSON: a payment is then cheap to write.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
from faker import Faker
from numpy.typing import NDArray

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
