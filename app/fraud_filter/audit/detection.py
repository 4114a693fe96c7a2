"""How well rules find labelled fraud: those of single payments, of velocity, of a model, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from fraud_filter.rules.ruleset import FAMILIES, RuleSet
from fraud_filter.schema import HEADER_LABEL, LEGITIMATE


class Found(NamedTuple):
    """Parts of 1; None where there is nothing to divide by. `precision`: how much of what rules of the family match is
    fraud; `recall`: how much of the fraud they match.
    """

    precision: float | None
    recall: float | None


class Detected(NamedTuple):
    """Counts of payments with a label, and what the rules of each family find of the fraud among them."""

    labelled: int
    fraud: int
    families: dict[str, Found]


class Detection:
    """Counts payments by label and by the rules that match them. A payment without a label counts for no one."""

    def __init__(self, rules: RuleSet) -> None:
        self._families = {rule.name: rules.family(rule) for rule in rules.rules}
        self._labelled = self._fraud = 0
        self._matched: Counter[str] = Counter()
        self._hits: Counter[str] = Counter()

    def see(self, headers: Iterable[tuple[str, bytes | None]] | None, matched: Iterable[str]) -> None:
        """Notes a valid payment: its headers, and the names of the rules that match it."""
        label = dict(headers or ()).get(HEADER_LABEL)
        if label is None:
            return
        is_fraud = label != LEGITIMATE
        self._labelled += 1
        self._fraud += is_fraud
        known = self._families.keys() & set(matched)  # rules of another version may be none of these
        for family in {self._families[name] for name in known}:
            self._matched[family] += 1
            self._hits[family] += is_fraud

    def result(self) -> Detected:
        """The figures of the families that have a rule."""
        families: dict[str, Found] = {
            family: Found(_part(self._hits[family], self._matched[family]), _part(self._hits[family], self._fraud))
            for family in FAMILIES
            if family in self._families.values()
        }
        return Detected(self._labelled, self._fraud, families)


def plain(detected: Detected | None) -> dict[str, Any] | None:
    """For JSON: precision and recall by family."""
    return detected and {family: found._asdict() for family, found in detected.families.items()}


def _part(some: int, of: int) -> float | None:
    return round(some / of, 4) if of else None
