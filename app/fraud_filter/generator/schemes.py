"""Labelled fraud: several payments of a card, of which hardly one is conspicuous by itself.

A scheme's payments come in its own pace: its next one waits until it is due, and a new scheme begins only where none
is. So the share of fraud is kept at any rate, and at low rates the pace is slower.
"""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fraud_filter.generator.population import CASH, CATEGORIES, MERCHANTS, Draw, Population, merchant_index
from fraud_filter.schema import LEGITIMATE

#: With labelled fraud there are more cards than without, so that a card pays every quarter of an hour and not twice a
#: minute (at 100 payments/s): otherwise its ordinary trips abroad look like two countries at once.
CARDS = 100_000
#: Ordinary payments of each batch, and of all, that are remembered for schemes that need a card with a past.
_NOTED, _REMEMBERED = 20, 20_000
#: Seconds since a card's payment at home: a traveller's is just over, a victim's account was quiet.
_JUST_S, _QUIET_S = (1.0, 45.0), (10.0, 300.0)
_INDEX = {category.name: index for index, category in enumerate(CATEGORIES)}
_IN_SHOPS = ("grocery", "restaurant", "fuel", "clothing", CASH)
_RESOLD = ("electronics", "clothing", "online_retail", "travel")
_TAKEN = ("electronics", "travel", "gambling", "online_retail")


@dataclass
class _Scheme:
    """`steps` are merchants and amounts still to come, `gap_s` the seconds between two of them, from and to."""

    label: bytes
    card: int
    steps: list[tuple[int, float]]
    gap_s: tuple[float, float]


class Schemes:
    """Fraud on the cards of a population. The same seed gives the same, for the same payments around it."""

    def __init__(self, seed: int, population: Population) -> None:
        self._rng = np.random.default_rng([seed, 2])
        self._people = population
        self._number = itertools.count()
        self._waiting: list[tuple[float, int, _Scheme]] = []
        #: Of ordinary payments at home, in their order: when, and of which card.
        self._times: list[float] = []
        self._cards: list[int] = []

    def apply(
        self, draw: Draw, due_s: NDArray[np.float64], fraud: NDArray[np.bool_], ordinary: NDArray[np.bool_]
    ) -> list[bytes | None]:
        """Makes the payments `fraud` of a batch steps of schemes; returns the labels, None where there is none."""
        labels: list[bytes | None] = [LEGITIMATE if plain else None for plain in ordinary.tolist()]
        for at in np.flatnonzero(fraud).tolist():
            scheme = self._next(float(due_s[at]))
            merchant, amount = scheme.steps.pop(0)
            draw.card[at], draw.merchant[at], draw.amount[at] = scheme.card, merchant, amount
            labels[at] = scheme.label
            if scheme.steps:
                again = float(due_s[at] + self._rng.uniform(*scheme.gap_s))
                heapq.heappush(self._waiting, (again, next(self._number), scheme))
        self._remember(draw, due_s, ordinary)
        return labels

    def _next(self, now_s: float) -> _Scheme:
        if self._waiting and self._waiting[0][0] <= now_s:
            return heapq.heappop(self._waiting)[2]
        kind = _KINDS[int(self._rng.choice(len(_KINDS), p=_WEIGHTS))]
        return kind(self, now_s) or self._card_testing(now_s)

    def _remember(self, draw: Draw, due_s: NDArray[np.float64], ordinary: NDArray[np.bool_]) -> None:
        at_home = draw.merchant // (len(CATEGORIES) * MERCHANTS) == self._people.card_country[draw.card]
        noted = np.flatnonzero(ordinary & at_home)[:_NOTED]
        self._times += due_s[noted].tolist()
        self._cards += draw.card[noted].tolist()
        if len(self._times) > 2 * _REMEMBERED:
            del self._times[:-_REMEMBERED], self._cards[:-_REMEMBERED]

    def _card_since(self, now_s: float, ago_s: tuple[float, float]) -> int | None:
        """A card that has paid at home so long ago; None: there is none."""
        first, last = (bisect_left(self._times, now_s - ago) for ago in reversed(ago_s))
        return self._cards[int(self._rng.integers(first, last))] if first < last else None

    def _card_testing(self, _: float) -> _Scheme:
        """Many small payments: is the stolen number still good?"""
        card = int(self._rng.integers(len(self._people.cards)))
        amounts = self._rng.uniform(0.5, 3, int(self._rng.integers(8, 16)))
        return self._scheme(b"card-testing", card, self._home(card), ("online_retail",), amounts, (0.5, 3))

    def _bust_out(self, _: float) -> _Scheme:
        """A limit is used up, by what can be sold again."""
        card = int(self._rng.integers(len(self._people.cards)))
        first, growth = self._rng.uniform(400, 900), self._rng.uniform(1.25, 1.6)
        amounts = np.array([first * growth**step for step in range(int(self._rng.integers(5, 9)))])
        return self._scheme(b"bust-out", card, self._home(card), _RESOLD, amounts, (2, 6))

    def _impossible_travel(self, now_s: float) -> _Scheme | None:
        """The owner has just paid at home, and a copy of the card pays in a shop abroad."""
        card = self._card_since(now_s, _JUST_S)
        if card is None:
            return None
        amounts = self._rng.uniform(20, 400, 1)
        return self._scheme(b"impossible-travel", card, self._abroad(card), _IN_SHOPS, amounts, (1, 1))

    def _account_takeover(self, now_s: float) -> _Scheme | None:
        """After some quiet, large payments from a new country, for other things."""
        card = self._card_since(now_s, _QUIET_S)
        if card is None:
            return None
        amounts = self._rng.uniform(300, 2500, int(self._rng.integers(3, 6)))
        return self._scheme(b"account-takeover", card, self._abroad(card), _TAKEN, amounts, (3, 10))

    def _home(self, card: int) -> int:
        return int(self._people.card_country[card])

    def _abroad(self, card: int) -> int:
        countries = len(self._people.countries)
        return (self._home(card) + int(self._rng.integers(1, countries))) % countries

    def _scheme(
        self,
        label: bytes,
        card: int,
        country: int,
        categories: Sequence[str],
        amounts: NDArray[np.float64],
        gap_s: tuple[float, float],
    ) -> _Scheme:
        names = self._rng.choice(len(categories), size=len(amounts))
        category = np.array([_INDEX[name] for name in categories])[names]
        merchants = merchant_index(
            np.full(len(amounts), country), category, self._rng.integers(MERCHANTS, size=len(amounts))
        )
        notes = np.where(category == _INDEX[CASH], np.ceil(amounts / 10) * 10, np.round(amounts, 2))
        return _Scheme(label, card, list(zip(merchants.tolist(), notes.tolist(), strict=True)), gap_s)


#: Kinds of schemes, and how often each begins; one is of a single payment, another of a dozen.
_KINDS: tuple[Callable[[Schemes, float], _Scheme | None], ...] = (
    Schemes._card_testing,
    Schemes._bust_out,
    Schemes._impossible_travel,
    Schemes._account_takeover,
)
_WEIGHTS = (0.1, 0.15, 0.5, 0.25)
